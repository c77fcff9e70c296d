"""Commands contain complete object references, and are compared by value."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, CreateObject, ObjectRef


@pytest.mark.parametrize(
    ("ref", "key"),
    [(ObjectRef("Pod", "ns", "p", "u"), "ns/p"), (ObjectRef("Node", "", "n"), "n")],
)
def test_the_key_of_an_object_reference(ref, key):
    """Cluster-scoped kinds have no namespace in the key."""
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
def test_the_target_of_a_create_command(manifest, target):
    """The name is empty if the API server generates it."""
    assert CreateObject(manifest).target == target


def test_commands_are_compared_by_value():
    """The outcome of a command is matched to the command by value."""
    ref = ObjectRef("Pod", "ns", "p", "u")
    assert Bind(ref, "n") == Bind(ObjectRef("Pod", "ns", "p", "u"), "n") != Bind(ref, "m")
