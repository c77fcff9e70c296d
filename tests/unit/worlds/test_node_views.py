"""Views of nodes that share unchanged parts with earlier views."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.api.objects import Node
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.registry.store import Store
from fairlead.worlds.node_views import NodeViews
from fairlead.worlds.seeded_ids import SeededIds

NOW = 1_000_000_000
AT = (NODE, "", "n1")
STATUS = {
    "capacity": {"cpu": "4"},
    "allocatable": {"cpu": "3900m"},
    "images": [{"names": ["web:1"], "sizeBytes": 5}],
    "conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    ],
}
MANIFEST = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": STATUS}


def patch(**parts):
    return lambda store: store.patch(*AT, parts, NOW)


def condition(status):
    written = {"type": "Ready", "status": status, "reason": "R", "message": ""}
    return lambda store: store.patch_status(*AT, {}, NOW, conditions=[written])


def recreate(store):
    store.delete(*AT, NOW, Deletion())
    store.create(MANIFEST, NOW)


WRITES = {
    "a taint": patch(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
    "two taints": patch(
        spec={
            "taints": [
                {"key": "a", "effect": "NoSchedule"},
                {"key": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
            ]
        }
    ),
    "no taints": patch(spec={"taints": None}),
    "a cordon": patch(spec={"unschedulable": True}),
    "labels": patch(metadata={"labels": {"x": "y"}}),
    "annotations": patch(metadata={"annotations": {"x": "y"}}),
    "a condition": condition("False"),
    "a condition again": condition("True"),
    "no conditions": lambda store: store.patch_status(*AT, {"conditions": None}, NOW),
    "a capacity": lambda store: store.patch_status(*AT, {"capacity": {"cpu": "8"}}, NOW),
    "another node": recreate,
}


def new_store():
    store = Store(SeededIds(0), registry=SIMULATION)
    store.create(MANIFEST, NOW)
    return store


def observed(store):
    """Return a list to which each change appends (its view, the completely decoded object)."""
    views, seen = NodeViews(), []
    views.load([decode(store.get(*AT))])
    store.subscribe(lambda change: seen.append((views.view_of(change), decode(change.object))))
    return seen


@given(st.lists(st.sampled_from(sorted(WRITES)), max_size=8))
def test_views_equal_decoded_nodes(writes):
    """This holds for all writes in any order."""
    store = new_store()
    seen = observed(store)
    for write in writes:
        WRITES[write](store)
    assert [view for view, _ in seen] == [decoded for _, decoded in seen]
    assert all(isinstance(view, Node) for view, _ in seen)


@pytest.mark.parametrize(
    ("write", "shared"),
    [
        ("a taint", ["status"]),
        ("labels", ["spec", "status"]),
        ("a condition", ["spec", "status.images", "status.capacity"]),
    ],
)
def test_a_write_decodes_only_the_changed_parts(write, shared):
    store = new_store()
    seen = observed(store)
    WRITES["a cordon"](store)
    WRITES[write](store)
    before, after = (view for view, _ in seen)
    for path in shared:
        parts = before, after
        for name in path.split("."):
            parts = [getattr(part, name) for part in parts]
        assert parts[0] is parts[1]
