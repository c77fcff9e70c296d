"""OutageRecorder does not examine pods whose state cannot have changed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.nodes.readiness import starting_condition
from fairlead.api.objects import NodeCondition
from fairlead.api.pods.original import REPLACES
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance
from fairlead.whatif.outcome.outage import NodeState
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder

NODES = ("a", "b", "c")
TAINTS = ("node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/not-ready:NoExecute")


def random_node(chance, name):
    made = make_node(name, taints=chance.some(TAINTS, 1), unschedulable=chance.one_in(5))
    annotations = {KUBELET: "stopped"} if chance.one_in(2) else {}
    ready = NodeCondition(type="Ready", status=chance.of(("True", "True", "Unknown", "False")))
    return replace(
        made,
        metadata=replace(made.metadata, annotations=annotations),
        status=replace(made.status, conditions=(ready,)),
    )


def random_pod(chance, name, node):
    phase = chance.of(("Running", "Running", "Pending", "Succeeded", "Failed"))
    made = make_pod(
        name,
        uid=f"{name}-{node}",
        node=node,
        status={"phase": phase},
        terminating=chance.one_in(5),
    )
    replaced = chance.of(("", "p0", "p1"))
    annotations = {REPLACES: replaced} if replaced and name > "p1" else {}
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


def random_stimulus(chance, there):
    """Return a change of a node, or of a pod in `there` {name: pod}; nodes are rarely deleted."""
    if chance.one_in(30):
        return ObjectDeleted(make_node(chance.of(NODES)))
    if chance.one_in(3):
        return ObjectChanged(random_node(chance, chance.of(NODES)))
    name = f"p{chance.below(8)}"
    known = there.get(name)
    if known is not None and chance.one_in(3):
        return ObjectDeleted(there.pop(name))
    node = chance.of(("", *NODES))
    if known is not None:
        node = known.spec.node_name or node
    pod = random_pod(chance, name, node)
    if known is not None:
        annotations = known.metadata.annotations
        meta = replace(pod.metadata, uid=known.metadata.uid, annotations=annotations)
        pod = replace(pod, metadata=meta)
    there[name] = pod
    return ObjectChanged(pod)


@pytest.mark.parametrize("seed", range(40))
def test_records_are_those_of_a_recorder_that_examines_all_pods(seed):
    chance, there = Chance(seed), {}
    plain, quick = OutageRecorder(_has_lost_nodes=True), OutageRecorder()
    for now in range(300):
        stimulus = random_stimulus(chance, there)
        for recorder in (plain, quick):
            recorder.observe(stimulus, now // 2)
        assert quick.affected == plain.affected
        assert quick.failed_nodes == plain.failed_nodes
    assert (quick.pod_samples, quick.node_samples) == (plain.pod_samples, plain.node_samples)
    assert (quick.first_back_at, quick.last_back_at) == (plain.first_back_at, plain.last_back_at)


def test_a_starting_node_has_not_failed():
    recorder = OutageRecorder()
    starting = decode_as(NodeCondition, starting_condition("2026-01-01T00:00:00Z"))
    made = make_node("a")
    node = replace(made, status=replace(made.status, conditions=(starting,)))
    for now, stimulus in enumerate((node, make_pod("p", node="a"), made)):
        recorder.observe(ObjectChanged(stimulus), now)
    assert (recorder.failed_nodes, recorder.affected) == ({}, {})
    assert all(not sample.counts[NodeState.UNREADY] for sample in recorder.node_samples)


def test_a_pod_stops_waiting_when_the_node_of_its_replacement_is_deleted():
    """Its state is computed anew at the next change of a node."""
    silent = make_node("a")
    silent = replace(silent, metadata=replace(silent.metadata, annotations={KUBELET: "stopped"}))
    unready = replace(
        silent,
        status=replace(silent.status, conditions=(NodeCondition(type="Ready", status="Unknown"),)),
    )
    old = make_pod("p", node="a")
    new = make_pod("q", node="b", status={"phase": "Pending"})
    new = replace(new, metadata=replace(new.metadata, annotations={REPLACES: "p"}))
    recorder = OutageRecorder()
    for one in (make_node("a"), make_node("b"), old, silent, new):
        recorder.observe(ObjectChanged(one), 1)
    assert recorder.affected["default/p"].state == "waiting"
    recorder.observe(ObjectDeleted(make_node("b")), 2)
    recorder.observe(ObjectChanged(unready), 3)
    assert recorder.affected["default/p"].state == "down"
