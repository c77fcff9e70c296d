"""The index of pods by node."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.nodelifecycle.node_pods import NodePods


def pod(name, node):
    metadata = {"namespace": "default", "name": name}
    return decode_as(Pod, {"metadata": metadata, "spec": {"nodeName": node} if node else {}})


A, B, C = pod("a", "node-1"), pod("b", "node-1"), pod("c", "node-2")
LOADED = ObjectsLoaded((B, A, C))


@pytest.mark.parametrize("known", [(), (pod("a", "node-2"), pod("d", "node-3"))])
def test_loaded_pods_are_stored_like_added_pods(known):
    loaded, added = NodePods(), NodePods()
    for one in known:
        loaded.put(one)
        added.put(one)
    loaded.load(LOADED)
    for one in (A, B, C):
        added.put(one)
    assert loaded.nodes() == added.nodes()
    for node in added.nodes():
        assert loaded.on(node) == added.on(node)
    assert loaded.get("default/a") is A


def test_changes_after_a_load_do_not_modify_the_loaded_mapping():
    index = NodePods()
    index.load(LOADED)
    index.remove(C)
    assert index.put(pod("a", "")) is A
    assert (index.nodes(), index.on("node-1"), index.get("default/a")) == (["node-1"], [B], None)
    index.remove(C)
    assert list(LOADED.bound_pods["node-1"]) == ["default/b", "default/a"]
    assert list(LOADED.bound_pods["node-2"]) == ["default/c"]


def test_a_pod_that_joins_a_node_creates_no_other_pod_on_the_node():
    loaded = ObjectsLoaded((B, A, C))
    index = NodePods()
    index.load(loaded)
    index.put(pod("d", "node-1"))
    assert loaded.bound_pods["node-1"].row("default/b") is not None
    assert index.on("node-1") == [A, B, pod("d", "node-1")]


def test_controllers_that_share_an_index_get_the_same_results():
    index = NodePods()
    index.load(LOADED)
    index.load(LOADED)
    moved, newer = pod("a", "node-2"), pod("a", "node-2")
    assert [index.put(moved), index.put(moved)] == [A, A]
    assert index.put(newer) is index.put(newer) is moved
    assert (index.on("node-1"), index.on("node-2")) == ([B], [newer, C])
    index.remove(newer)
    index.remove(newer)
    assert index.put(newer) is None
    assert index.on("node-2") == [newer, C]


def test_loading_twice_in_a_row_makes_no_pods():
    loaded = ObjectsLoaded((B, A, C))
    index = NodePods()
    index.load(loaded)
    index.load(loaded)
    assert loaded.bound.row("default/b") is not None
