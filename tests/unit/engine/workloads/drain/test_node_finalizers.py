"""Finalizers of deleted nodes are removed, that of Karpenter after a drain."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import EvictPod
from fairlead.engine.workloads.drain.controller import Drain
from fairlead.engine.workloads.drain.node_finalizers import NodeFinalizers

TERMINATION = "karpenter.sh/termination"
REQUEST = {"metadata": {"annotations": {"fairlead.dev/drain": "requested"}}}


class Ignored:
    def report(self, record):
        pass


@pytest.fixture
def world(new_world):
    return new_world(Drain(Ignored()), NodeFinalizers(drains=True))


def held(build, *finalizers):
    node = build.node("n1")
    node["metadata"]["finalizers"] = list(finalizers)
    return node


def exists(world):
    return world.get("Node", "n1", "") is not None


def leave(world):
    world.delete("Pod", "a", grace=0)


def test_the_finalizer_of_karpenter_is_removed_when_the_node_is_empty(world, build):
    world.load(held(build, TERMINATION, "example.com/other"), build.pod("a"))
    world.delete("Node", "n1", namespace="")
    assert [command.pod.name for command in world.sent(EvictPod)] == ["a"]
    assert world.get("Node", "n1", "")["metadata"]["finalizers"] == [TERMINATION]
    leave(world)
    assert not exists(world)


def test_karpenter_waits_for_pods_that_must_not_be_disrupted(world, build):
    pod = build.pod("a")
    pod["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    world.load(held(build, TERMINATION), pod)
    world.delete("Node", "n1", namespace="")
    assert world.sent(EvictPod) == []
    assert exists(world)
    leave(world)
    assert not exists(world)


def test_an_empty_node_is_removed_at_once(world, build):
    world.load(held(build, TERMINATION))
    world.delete("Node", "n1", namespace="")
    assert not exists(world)


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_node_that_is_deleted_during_or_after_its_drain_is_removed(world, build, is_complete):
    world.load(held(build, TERMINATION), build.pod("a"))
    world.patch("Node", "n1", REQUEST, namespace="")
    if is_complete:
        leave(world)
    world.delete("Node", "n1", namespace="")
    assert exists(world) is not is_complete
    if not is_complete:
        leave(world)
    assert not exists(world)


def test_a_node_that_is_not_deleted_keeps_its_finalizers(world, build):
    world.load(held(build, TERMINATION, "example.com/other"), build.pod("a"))
    world.patch("Node", "n1", REQUEST, namespace="")
    leave(world)
    assert world.get("Node", "n1", "")["metadata"]["finalizers"] == [
        TERMINATION,
        "example.com/other",
    ]


@pytest.mark.parametrize("drains", [True, False])
def test_a_node_that_is_being_deleted_at_first_keeps_its_finalizers(new_world, build, drains):
    """Their program has not removed them; only that of Karpenter is removed after a drain."""
    world = new_world(Drain(Ignored()), NodeFinalizers(drains=drains))
    node = held(build, TERMINATION, "example.com/other")
    node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.load(node, build.pod("a"))
    kept = [TERMINATION, "example.com/other"]
    assert world.get("Node", "n1", "")["metadata"]["finalizers"] == kept
    leave(world)
    assert world.get("Node", "n1", "")["metadata"]["finalizers"] == kept[drains:]
    world.patch("Node", "n1", {"metadata": {"labels": {"a": "b"}}}, namespace="")
    assert exists(world)


def test_a_simulated_karpenter_removes_its_finalizer_itself(new_world, build):
    world = new_world(Drain(Ignored()), NodeFinalizers(drains=False))
    world.load(held(build, TERMINATION, "example.com/other"), build.pod("a"))
    world.delete("Node", "n1", namespace="")
    assert world.get("Node", "n1", "")["metadata"]["finalizers"] == [TERMINATION]
    assert not world.sent(EvictPod)
