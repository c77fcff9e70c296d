"""Drains: which pods are evicted, what delays a drain, and how it is cancelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.command import Bind, EvictPod, ObjectRef, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodEvicted
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.disruption.controller import Disruption
from fairlead.engine.workloads.drain.controller import Drain

REQUEST = {"metadata": {"annotations": {"fairlead.dev/drain": "requested"}}}
RECALL = {"metadata": {"annotations": {"fairlead.dev/drain": None}}}
OWNER = ("ReplicaSet", "web", "rs")


class Records:
    def __init__(self):
        self.records = []

    def report(self, record):
        self.records.append(record)


@pytest.fixture
def records():
    return Records()


@pytest.fixture
def drain(records):
    return Drain(records)


@pytest.fixture
def world(new_world, drain):
    return new_world(drain)


def request(world, node="n1", patch=REQUEST):
    world.patch("Node", node, patch, namespace="")


def refuse_cordon(command):
    is_cordon = isinstance(command, PatchObject) and "spec" in command.patch
    return FailureReason.CONFLICT if is_cordon else None


def evicted(world):
    return [command.pod.name for command in world.sent(EvictPod)]


def test_the_node_is_cordoned_and_its_pods_are_evicted(world, build, drain, records):
    world.load(build.node("n1"), build.pod("a"), build.pod("b"), build.pod("c", node="n2"))
    request(world)
    assert world.log[0] == PatchObject(
        ObjectRef("Node", "", "n1", "uid-1"), {"spec": {"unschedulable": True}}
    )
    assert evicted(world) == ["a", "b"]
    assert records.records == [
        PodEvicted(ObjectRef("Pod", "ns", "a", "uid-2"), "n1", "drain", world.now),
        PodEvicted(ObjectRef("Pod", "ns", "b", "uid-3"), "n1", "drain", world.now),
    ]
    assert drain.draining == ("n1",)
    world.delete("Pod", "a", grace=0)
    world.delete("Pod", "b", grace=0)
    assert drain.draining == ()


def test_a_cordoned_node_is_not_cordoned_again(world, build):
    world.load(build.node("n1") | {"spec": {"unschedulable": True}}, build.pod("a"))
    request(world)
    assert world.sent(PatchObject) == []
    assert evicted(world) == ["a"]


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}


@pytest.mark.parametrize(
    ("case", "fields", "is_evicted"),
    [
        ("a DaemonSet's pod stays", {"owner": ("DaemonSet", "d", "u")}, False),
        ("a static pod stays", {"owner": ("Node", "n1", "u")}, False),
        ("a mirror pod stays", {"meta": MIRROR}, False),
        ("a bare pod goes", {}, True),
        ("a pending pod goes", {"phase": "Pending"}, True),
        ("one that tolerates everything goes", {"tolerations": [{"operator": "Exists"}]}, True),
    ],
)
def test_which_pods_are_evicted(world, build, drain, case, fields, is_evicted):
    world.load(build.node("n1"), build.pod("a", **fields))
    request(world)
    assert (evicted(world) == ["a"]) is is_evicted, case
    assert (drain.draining == ("n1",)) is is_evicted, case


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("kind", ["DaemonSet", "Job", "ReplicaSet"])
def test_finished_pods_are_deleted_at_once(world, build, drain, phase, kind):
    world.load(build.node("n1"), build.pod("a", owner=(kind, "o", "u"), phase=phase))
    request(world)
    assert evicted(world) == ["a"]
    assert world.pods(alive=False) == {}
    assert drain.draining == ()


def test_a_terminating_pod_is_waited_for(world, build, drain):
    world.load(build.node("n1"), build.pod("a"))
    world.delete("Pod", "a")
    request(world)
    assert evicted(world) == []
    assert drain.draining == ("n1",)
    world.delete("Pod", "a", grace=0)
    assert drain.draining == ()


def test_the_next_attempt_removes_a_pod_that_has_ended(world, build, drain):
    running = [True]
    world.refuse = lambda one: (
        FailureReason.TOO_MANY_REQUESTS if running and isinstance(one, EvictPod) else None
    )
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    running.clear()
    world.patch_status("Pod", "a", {"phase": "Succeeded"})
    assert drain.draining == ("n1",)
    world.run(seconds(20))
    assert len(evicted(world)) == 2
    assert drain.draining == ()
    assert drain.blocked == ()


def test_a_refused_eviction_is_tried_every_five_seconds(world, build, drain, records):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.TOO_MANY_REQUESTS if down[0] and isinstance(one, EvictPod) else None
    )
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    begun = world.now
    world.run(seconds(12))
    assert len(evicted(world)) == 3
    (blocked,) = drain.blocked
    assert (blocked.node, blocked.pod.name, blocked.since) == ("n1", "a", begun)
    assert blocked.message == "refused by the test"
    assert records.records == []
    down[0] = False
    world.run(seconds(3))
    assert drain.blocked == ()
    assert [record.at for record in records.records] == [begun + seconds(15)]


@pytest.mark.parametrize("pods", [(), ("a",)])
def test_a_refused_cordon_is_repeated(world, build, pods):
    """Also if the node was empty at once, which completes the drain."""
    world.load(build.node("n1"), *map(build.pod, pods))
    world.refuse = refuse_cordon
    request(world)
    assert not world.get("Node", "n1", namespace="")["spec"].get("unschedulable")
    world.refuse = lambda _: None
    world.run(seconds(6))
    assert world.get("Node", "n1", namespace="")["spec"]["unschedulable"]


def test_a_refused_cordon_of_a_cancelled_drain_is_not_repeated(world, build):
    world.load(build.node("n1"), build.pod("a"))
    world.refuse = refuse_cordon
    request(world)
    assert not world.get("Node", "n1", namespace="")["spec"].get("unschedulable")
    request(world, patch=RECALL)
    world.refuse = lambda _: None
    world.run(seconds(6))
    assert not world.get("Node", "n1", namespace="")["spec"].get("unschedulable")


def test_any_other_refusal_is_final(world, build, drain):
    world.refuse = lambda one: FailureReason.INTERNAL_ERROR if isinstance(one, EvictPod) else None
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    world.run(seconds(60))
    assert len(evicted(world)) == 1
    assert [one.pod.name for one in drain.blocked] == ["a"]


def test_a_pod_that_was_preempted_is_not_evicted_again(world, build):
    world.refuse = lambda one: (
        FailureReason.TOO_MANY_REQUESTS if isinstance(one, EvictPod) else None
    )
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    world.delete("Pod", "a")
    world.run(seconds(20))
    assert len(evicted(world)) == 1


@pytest.mark.parametrize("patch", [RECALL, {"spec": {"unschedulable": False}}])
def test_a_drain_can_be_cancelled(world, build, drain, patch):
    """Removing the request or uncordoning the node cancels it."""
    world.refuse = lambda one: (
        FailureReason.TOO_MANY_REQUESTS if isinstance(one, EvictPod) else None
    )
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    request(world, patch=patch)
    request(world, patch={"metadata": {"labels": {"unrelated": "change"}}})
    world.run(seconds(20))
    assert drain.draining == ()
    assert len(evicted(world)) == 1


def test_a_cancelled_drain_can_be_requested_again(world, build):
    """There is one retry at a time, not one for each request."""
    world.refuse = lambda one: (
        FailureReason.TOO_MANY_REQUESTS if isinstance(one, EvictPod) else None
    )
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    request(world, patch=RECALL)
    request(world)
    world.run(seconds(6))
    assert len(evicted(world)) == 3


def test_a_loaded_drain_continues(world, build):
    annotated = build.node("n1", annotations={"fairlead.dev/drain": "requested"})
    world.load(annotated, build.pod("a"))
    assert evicted(world) == ["a"]


def test_pods_created_after_the_end_of_a_drain_are_kept(world, build):
    """A drain is over when the node is empty once, whatever happens to the node later."""
    world.load(build.node("n1"), build.pod("late", node=""))
    request(world)
    world._do(Bind(ObjectRef("Pod", "ns", "late"), "n1"))
    request(world, patch={"metadata": {"labels": {"unrelated": "change"}}})
    assert evicted(world) == []


def test_a_deleted_node_is_not_drained(world, build, drain):
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    world.delete("Node", "n1", namespace="")
    assert drain.draining == ()


@pytest.mark.parametrize(
    ("tolerations", "is_evicted"), [([], True), ([{"operator": "Exists"}], False)]
)
def test_a_pod_bound_during_the_drain_is_evicted_unless_it_would_return(
    world, build, tolerations, is_evicted
):
    """The pod was being bound when the node was cordoned."""
    world.load(
        build.node("n1"), build.pod("a"), build.pod("late", node="", tolerations=tolerations)
    )
    request(world)
    world._do(Bind(ObjectRef("Pod", "ns", "late"), "n1"))
    assert ("late" in evicted(world)) is is_evicted


def test_a_pod_created_with_the_name_of_the_node_during_the_drain_stays(world, build):
    """A ReplicaSet whose pod template has spec.nodeName replaces each evicted pod immediately."""
    world.load(build.node("n1"), build.pod("a"))
    request(world)
    world.create(build.pod("again"))
    assert evicted(world) == ["a"]


@given(
    replicas=st.integers(1, 5),
    allowed=st.integers(0, 3),
    stop_s=st.integers(1, 20),
    nodes=st.lists(st.sampled_from(["n1", "n2"]), min_size=5, max_size=5),
)
def test_a_drain_never_violates_a_budget_and_ends_if_possible(
    new_world, build, *, replicas, allowed, stop_s, nodes
):
    """With all workload controllers and kubelets, pods move as fast as the budgets allow."""
    records = Records()
    drain = Drain(records)

    def place(pod):
        free = [name for name in ("n2", "n1") if not is_cordoned(name)]
        return free[0] if free else None

    def is_cordoned(name):
        return world.get("Node", name, "").get("spec", {}).get("unschedulable", False)

    config = KubeletConfig(stop=StopAfter(seconds(stop_s)))
    world = new_world(Kubelets(config), Workloads(), Disruption(), drain, place=place)
    world.load(
        build.node("n1"),
        build.node("n2"),
        build.budget(maxUnavailable=allowed),
        build.owned("ReplicaSet", "web", replicas, uid="rs"),
        *(build.pod(f"web-{i}", OWNER, node=nodes[i]) for i in range(replicas)),
    )
    request(world)
    on_node = nodes[:replicas].count("n1")
    for _ in range(200):
        world.run(seconds(1))
        phases = [pod.get("status", {}).get("phase") for pod in world.pods().values()]
        assert phases.count("Running") >= replicas - allowed
    if allowed:
        assert drain.draining == ()
        assert len(records.records) == on_node
        assert all(pod["spec"]["nodeName"] == "n2" for pod in world.pods().values())
        assert len(world.pods()) == replicas
    else:
        assert len(drain.blocked) == on_node
        assert records.records == []
