"""The NoSchedule taints that the conditions and spec of a node require."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.engine.nodelifecycle.node_edit import desired_keys, missing_keys, stale_keys


def node(conditions=None, taints=(), *, unschedulable=False):
    posted = [{"type": kind, "status": status} for kind, status in (conditions or {}).items()]
    form = {
        "spec": {"unschedulable": unschedulable, "taints": list(taints)},
        "status": {"conditions": posted},
    }
    return decode_as(Node, form)


def short(keys):
    return [key.removeprefix("node.kubernetes.io/") for key in keys]


@pytest.mark.parametrize(
    ("conditions", "keys"),
    [
        ({}, []),
        ({"Ready": "True"}, []),
        ({"Ready": "False"}, ["not-ready"]),
        ({"Ready": "Unknown"}, ["unreachable"]),
        ({"MemoryPressure": "True", "Ready": "True"}, ["memory-pressure"]),
        ({"DiskPressure": "True"}, ["disk-pressure"]),
        ({"PIDPressure": "True"}, ["pid-pressure"]),
        ({"NetworkUnavailable": "True"}, ["network-unavailable"]),
        ({"MemoryPressure": "Unknown", "NetworkUnavailable": "Unknown"}, []),
        ({"Ready": "Unknown", "DiskPressure": "True"}, ["unreachable", "disk-pressure"]),
        ({"Whatever": "True"}, []),
    ],
)
def test_conditions_require_taints(conditions, keys):
    assert short(desired_keys(node(conditions))) == keys


def test_a_cordoned_node_requires_a_taint():
    assert short(desired_keys(node({"Ready": "False"}, unschedulable=True))) == [
        "not-ready",
        "unschedulable",
    ]


def taint(key, effect="NoSchedule"):
    return {"key": f"node.kubernetes.io/{key}", "effect": effect}


def test_missing_and_stale_taints_are_found():
    found = node({"Ready": "Unknown"}, [taint("not-ready"), taint("unschedulable")])
    assert short(missing_keys(found)) == ["unreachable"]
    assert short(stale_keys(found)) == ["not-ready", "unschedulable"]


@pytest.mark.parametrize("effect", ["NoExecute", "PreferNoSchedule"])
def test_taints_with_other_effects_are_ignored(effect):
    found = node({"Ready": "Unknown"}, [taint("unreachable", effect), taint("not-ready", effect)])
    assert short(missing_keys(found)) == ["unreachable"]
    assert stale_keys(found) == ()


def test_taints_with_other_keys_are_ignored():
    assert stale_keys(node({}, [{"key": "dedicated", "effect": "NoSchedule"}])) == ()
