"""Commands: complete identities, values that compare."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, CreateObject, ObjectRef


@pytest.mark.parametrize(
    ("ref", "key"),
    [(ObjectRef("Pod", "ns", "p", "u"), "ns/p"), (ObjectRef("Node", "", "n"), "n")],
)
def test_the_key_of_an_identity(ref, key):
    """Cluster-scoped kinds have no namespace to show."""
    assert ref.key == key


@pytest.mark.parametrize(
    ("manifest", "target"),
    [
        ({"kind": "Node", "metadata": {"name": "n"}}, ObjectRef("Node", "", "n")),
        (
            {"kind": "Pod", "metadata": {"namespace": "a", "generateName": "x-"}},
            ObjectRef("Pod", "a", ""),
        ),
        ({}, ObjectRef("", "", "")),
    ],
)
def test_what_a_creation_asks_for(manifest, target):
    """The name is open where the server shall make one."""
    assert CreateObject(manifest).target == target


def test_commands_are_compared_by_value():
    """An answer finds its question by what was commanded."""
    ref = ObjectRef("Pod", "ns", "p", "u")
    assert Bind(ref, "n") == Bind(ObjectRef("Pod", "ns", "p", "u"), "n") != Bind(ref, "m")
