"""Kubelets do not admit pods that do not fit their node, except critical pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, OwnerReference, Pod
from fairlead.engine.core.command import PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_pod

T0 = seconds(1_000)
CRITICAL = 2_000_000_000
SIZE = {"cpu": "4", "memory": "1000", "pods": "3"}


def node(*, taints=(), labels=None, conditions=(), stopped=False, allocatable=SIZE):
    return decode_as(
        Node,
        {
            "metadata": {
                "name": "n",
                "uid": "n",
                "labels": labels or {},
                "annotations": {"fairlead.dev/kubelet": "paused"} if stopped else {},
            },
            "spec": {"taints": list(taints)},
            "status": {
                "allocatable": allocatable,
                "conditions": [{"type": one, "status": "True"} for one in ("Ready", *conditions)],
            },
        },
    )


def bound(name, requests=None, **changes):
    """Return a pod that is bound to node n and has not started."""
    return make_pod(name, node="n", requests=requests, status={"phase": "Pending"}, **changes)


def running(name, requests=None, **changes):
    return make_pod(name, node="n", requests=requests, **changes)


class World:
    """Kubelets with the state of their cluster; pods change when the kubelets write."""

    def __init__(self, *objects):
        self.cluster = Cluster()
        self.machine = Kubelets(KubeletConfig(), cluster=self.cluster)
        self.pods = {one.key: one for one in objects if isinstance(one, Pod)}
        self.phases, self.events = {}, []
        self.observe(ObjectsLoaded(objects), T0)

    def observe(self, stimulus, now):
        self.cluster.apply(stimulus)
        self.note(self.machine.handle(stimulus, now), now)

    def put(self, *objects, after=0):
        for one in objects:
            if isinstance(one, Pod):
                self.pods[one.key] = one
            self.observe(ObjectChanged(one), T0 + seconds(after))

    def note(self, commands, now):
        for one in commands:
            if isinstance(one, RecordEvent) and one.regarding.kind == "Pod":
                self.events.append((one.regarding.name, one.type, one.reason, one.note))
            if isinstance(one, PatchStatus) and one.target.kind == "Pod":
                self.phases[one.target.name] = (now - T0) / seconds(1), one
                old = self.pods[one.target.key]
                status = decode_as(Pod, {"status": dict(one.fields)}).status
                self.pods[old.key] = new = replace(old, status=status)
                self.observe(ObjectChanged(new), now)

    def run(self):
        """Run until nothing is due; return phase and reason of each pod that changed."""
        while (due := self.machine.next_deadline()) is not None and due < T0 + seconds(600):
            self.note(self.machine.handle_deadline(due), due)
        return {
            name: (patch.fields["phase"], patch.fields.get("reason", ""))
            for name, (_, patch) in self.phases.items()
        }


NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
HALF = {"cpu": "2500m", "memory": "10"}
CASES = {
    "enough of everything": ([], bound("p", HALF), node(), None),
    "cpu, in millicores": (
        [running("a", HALF)],
        bound("p", HALF),
        node(),
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2500, used: 2500, capacity: 4000",
        ),
    ),
    "the first of several resources": (
        [],
        bound("p", {"memory": "2000", "example.com/a": "1", "cpu": "1"}),
        node(allocatable=SIZE | {"example.com/a": "0"}),
        (
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 2000, used: 0, capacity: 1000",
        ),
    ),
    "an extended resource": (
        [],
        bound("p", {"example.com/a": "2"}),
        node(allocatable=SIZE | {"example.com/a": "1"}),
        (
            "OutOfexample.com/a",
            "Node didn't have enough resource: example.com/a, requested: 2, used: 0, capacity: 1",
        ),
    ),
    "an extended resource that the node does not list": (
        [],
        bound("p", {"example.com/a": "2"}),
        node(),
        None,
    ),
    "the number of pods": (
        [running("a"), running("b"), running("c")],
        bound("p"),
        node(),
        (
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
        ),
    ),
    "finished pods do not count": (
        [running("a"), running("b"), running("c", status={"phase": "Failed"})],
        bound("p"),
        node(),
        None,
    ),
    "a node selector": (
        [],
        bound("p", spec={"nodeSelector": {"disk": "ssd"}}),
        node(labels={"disk": "hdd"}),
        (
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
    ),
    "a host port": (
        [running("a", host_ports=[80])],
        bound("p", host_ports=[80]),
        node(),
        (
            "NodePorts",
            f"Predicate NodePorts failed: {NO_PORTS}",
        ),
    ),
    "a NoExecute taint": (
        [],
        bound("p"),
        node(taints=[{"key": "a", "effect": "NoExecute"}]),
        (
            "TaintToleration",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
        ),
    ),
    "a NoSchedule taint is the scheduler's": (
        [],
        bound("p"),
        node(taints=[{"key": "a", "effect": "NoSchedule"}]),
        None,
    ),
    "disk pressure": (
        [],
        bound("p", HALF),
        node(conditions=["DiskPressure"]),
        ("Evicted", "The node had condition: [DiskPressure]. "),
    ),
    "disk pressure and a critical pod": (
        [],
        bound("p", HALF, priority=CRITICAL),
        node(conditions=["DiskPressure"]),
        None,
    ),
    "memory pressure and a pod without requests": (
        [],
        bound("p"),
        node(conditions=["MemoryPressure"]),
        ("Evicted", "The node had condition: [MemoryPressure]. "),
    ),
    "memory pressure and a pod with requests": (
        [],
        bound("p", HALF),
        node(conditions=["MemoryPressure"]),
        None,
    ),
    "memory pressure that a pod tolerates": (
        [],
        bound("p", spec={"tolerations": [{"operator": "Exists"}]}),
        node(conditions=["MemoryPressure"]),
        None,
    ),
    "a static pod was admitted before it had an object": (
        [],
        replace(
            bound("p", {"cpu": "9"}),
            metadata=replace(bound("p").metadata, annotations={"kubernetes.io/config.mirror": "1"}),
        ),
        node(),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_kubelet_admits_only_pods_that_fit(case):
    there, pod, on, rejection = CASES[case]
    world = World(on, *there)
    world.put(pod)
    if rejection is None:
        assert world.run()["p"] == ("Running", "")
        return
    reason, message = rejection
    assert world.run()["p"] == ("Failed", reason)
    assert world.events == [("p", "Warning", reason, message)]
    _, patch = world.phases["p"]
    assert patch.fields["message"] == f"Pod was rejected: {message}"
    assert patch.fields["startTime"]
    assert patch.conditions == ()


def test_the_pod_that_is_bound_first_is_admitted():
    """A rejected pod does not occupy resources, even before its status is written."""
    world = World(node())
    world.put(bound("a", {"cpu": "3"}), bound("b", {"cpu": "3"}), bound("c", {"cpu": "1"}))
    assert world.run() == {
        "a": ("Running", ""),
        "b": ("Failed", "OutOfcpu"),
        "c": ("Running", ""),
    }


def owned(pod):
    """Return `pod` as a pod of a ReplicaSet."""
    owner = OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))


@pytest.mark.parametrize(
    ("gone", "phase"),
    [
        pytest.param("big", "Running", id="a pod that frees enough"),
        pytest.param("small", "Failed", id="a pod that frees too little"),
    ],
)
def test_a_pod_whose_rejection_is_paused_is_admitted_if_a_pod_leaves(gone, phase):
    """Its controller would create the same pod again, and the kubelet would admit that pod."""
    there = running("big", {"cpu": "3"}), running("small", {"cpu": "100m"})
    world = World(node(), *there)
    world.put(owned(bound("first", {"cpu": "2"})))
    while "first" not in world.phases:
        world.note(world.machine.handle_deadline(T0 + seconds(1)), T0 + seconds(1))
    world.put(owned(bound("second", {"cpu": "2"})), after=1)  # its rejection is due after 2.125 s
    world.observe(ObjectDeleted(world.pods[f"default/{gone}"]), T0 + seconds(2.05))
    assert world.run()["second"][0] == phase


def world_with_a_paused_rejection():
    """Return a world in which `second` is rejected at 1 s; its rejection is due at 2.125 s."""
    world = World(node(), running("big", {"cpu": "3"}))
    world.put(owned(bound("first", {"cpu": "2"})))
    while "first" not in world.phases:
        world.note(world.machine.handle_deadline(T0 + seconds(1)), T0 + seconds(1))
    world.put(owned(bound("second", {"cpu": "2"})), after=1)
    return world


@pytest.mark.parametrize(
    ("change", "phase"),
    [
        pytest.param(node(allocatable=SIZE | {"cpu": "5"}), "Running", id="a larger node"),
        pytest.param(node(labels={"a": "b"}), "Failed", id="a node with another label"),
        pytest.param(running("big", {"cpu": "2"}), "Running", id="a pod with smaller requests"),
    ],
)
def test_a_pod_whose_rejection_is_paused_is_admitted_if_its_node_gets_room(change, phase):
    """The kubelet would admit the next replacement of the pod."""
    world = world_with_a_paused_rejection()
    world.put(change, after=2)
    assert world.run()["second"][0] == phase


def test_a_refused_report_of_a_rejection_is_repeated():
    world = world_with_a_paused_rejection()
    due = T0 + seconds(2.125)
    [_, report] = world.machine.handle_deadline(due)
    world.note(world.machine.handle(CommandFailed(report, FailureReason.CONFLICT, ""), due), due)
    assert world.run()["second"] == ("Failed", "OutOfcpu")


def test_a_pod_that_changes_while_its_rejection_is_written_does_not_start():
    world = world_with_a_paused_rejection()
    pod = world.pods["default/second"]
    world.machine.handle_deadline(T0 + seconds(2.125))  # the write is on its way
    world.put(replace(pod, metadata=replace(pod.metadata, labels={"a": "b"})), after=2.2)
    assert "second" not in world.run()


def test_pods_bound_during_an_outage_are_admitted_or_rejected_after_it():
    """The kubelet has not seen the pods before."""
    world = World(node(stopped=True), running("old", {"cpu": "3"}))
    world.put(bound("a", {"cpu": "3"}), bound("b", {"cpu": "1"}))
    assert world.run() == {}
    world.put(node(), after=60)
    assert world.run() == {"a": ("Failed", "OutOfcpu"), "b": ("Running", "")}


def test_a_pod_that_was_admitted_is_not_checked_again():
    accepted = bound("p", {"cpu": "9"})
    status = replace(accepted.status, start_time="1970-01-01T00:16:00Z")
    assert World(node(), replace(accepted, status=status)).run() == {"p": ("Running", "")}


def guaranteed(name, cpu, memory):
    amounts = {"cpu": cpu, "memory": memory}
    resources = {"requests": amounts, "limits": amounts}
    return running(name, spec={"containers": [{"name": "main", "resources": resources}]})


def test_pods_of_lower_priority_stop_before_a_critical_pod_starts():
    """They stop one after the other, and the critical pod starts after them."""
    world = World(node(), running("a", {"cpu": "1"}), running("b", {"cpu": "3"}))
    world.put(bound("p", {"cpu": "4"}, priority=CRITICAL))
    assert world.run() == {
        "b": ("Failed", "Preempting"),
        "a": ("Failed", "Preempting"),
        "p": ("Running", ""),
    }
    assert {name: at for name, (at, _) in world.phases.items()} == {"b": 30, "a": 60, "p": 61}
    assert world.events[0] == (
        "b",
        "Warning",
        "Preempting",
        "Preempted in order to admit critical pod",
    )
    _, patch = world.phases["a"]
    assert patch.fields["message"] == "Preempted in order to admit critical pod"
    disrupted = patch.conditions[0]
    assert (disrupted.type, disrupted.reason, disrupted.message) == (
        "DisruptionTarget",
        "TerminationByKubelet",
        "Pod was preempted by Kubelet to accommodate a critical pod.",
    )


@pytest.mark.parametrize(
    ("there", "wanted", "victims"),
    [
        pytest.param(
            [guaranteed("g", "2", "100"), running("b", {"cpu": "2"})],
            {"cpu": "2"},
            ["b"],
            id="Burstable pods go before Guaranteed pods",
        ),
        pytest.param(
            [running("s", {"cpu": "1"}), running("m", {"cpu": "1500m"}), running("l")],
            {"cpu": "2500m"},
            ["s"],
            id="of two that free enough, the smaller one goes",
        ),
        pytest.param(
            [running("x"), running("y", {"cpu": "1"}), running("z", {"cpu": "1"})],
            {"cpu": "1"},
            ["x"],
            id="a pod without requests goes if only the number of pods matters",
        ),
    ],
)
def test_as_few_pods_stop_as_possible(there, wanted, victims):
    world = World(node(), *there)
    world.put(bound("p", wanted, priority=CRITICAL))
    failed = [name for name, (phase, _) in world.run().items() if phase == "Failed"]
    assert failed == victims


def test_a_critical_pod_is_rejected_if_even_all_others_do_not_free_enough():
    world = World(node(), running("a", {"cpu": "1"}, priority=CRITICAL + 1))
    world.put(bound("p", {"cpu": "4"}, priority=CRITICAL))
    assert world.run() == {"p": ("Failed", "UnexpectedAdmissionError")}
    assert world.events[0][3] == (
        "Unexpected error while attempting to recover from admission failure: preemption: error "
        "finding a set of pods to preempt: no set of running pods found to reclaim resources: "
        "[(res: cpu, q: 1000), ]"
    )


def test_a_critical_pod_is_rejected_for_other_reasons_than_resources():
    world = World(node(), running("a", {"cpu": "4"}))
    world.put(bound("p", {"cpu": "4"}, priority=CRITICAL, spec={"nodeSelector": {"disk": "ssd"}}))
    assert world.run() == {"p": ("Failed", "NodeAffinity")}
