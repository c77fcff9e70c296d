"""The verdict about one run, such as that of a scenario."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.assessment.run_verdict import _TABLE, run_verdict
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome, NodeTransition
from fairlead.whatif.outcome.jobs import GangTally, GangWaits, JobsOutcome
from fairlead.whatif.outcome.outage import (
    DrainProgress,
    LossCause,
    LostPod,
    NodeHistory,
    OutageOutcome,
)
from fairlead.whatif.outcome.run_outcome import (
    DeletedClaim,
    Evicted,
    NodeEnd,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    Recurrence,
    RunOutcome,
    Undrained,
    UndrainedCause,
)
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef


def pod(name, node="", reason="", phase="Pending", **fields):
    return PodEnd(namespace="ns", name=name, node=node, phase=phase, reason=reason, **fields)


ON_NODE = pod("a", "n", phase="Running")
COMPLETED = PodEnd(namespace="ns", name="b", node="n", phase="Succeeded", ended_at=1)
BREACHED = "Budget ns/web is breached: 1 pod is displaced when it allows no more disruptions."
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def outcome(*pods, **fields):
    facts = {
        "started_at": 0, "ended_at": seconds(60), "settled": True, "preempted": (), "evicted": (),
        "pdb_breaches": (), "undrained": (), "skipped": (), "errors": (), "recurrences": (),
        "nodes": (), "allocations": (), "priority_names": {}, "samples": (),
        "choices_among_equals": 0,
    }  # fmt: skip
    return RunOutcome(pods={one.key: one for one in pods}, **{**facts, **fields})


def preempted():
    return Preempted(
        pod=ON_NODE, node="n", at=1, by="ns/x", by_priority=1, rule="r", candidates=1,
    )  # fmt: skip


def evicted(one=ON_NODE):
    return Evicted(pod=one, node="n", at=1, why="drain")


def node(name, *, is_ready):
    return NodeEnd(
        name=name, zone="", unschedulable=False, is_ready=is_ready, allocatable={}, requested={},
        pods=(),
    )  # fmt: skip


def outage(*lost, back_at=None):
    """Return an outage of the node n, with (pod, cause) for each of the pods in `lost`."""
    failed = NodeHistory(
        node="n", zone="", quiet_at=1, unready_at=None, tainted_at=None, first_eviction_at=None,
        last_eviction_at=None, back_at=back_at, pods=len(lost), evicted=0,
    )  # fmt: skip
    return OutageOutcome(
        concerned=len(lost), evicted=0, first_eviction_at=None, last_eviction_at=None,
        first_back_at=None, last_back_at=None, last_return_at=None, replaced=0, back_with_node=0,
        late_with_node=0, last_with_node=0,
        nodes=(failed,),
        lost=tuple(LostPod(pod=f"ns/{name}", priority=0, node="n", cause=cause, why="")
                   for name, cause in lost),
        preempted=(), taints=(), zones=(), node_samples=(), pod_samples=(),
    )  # fmt: skip


ADDED = NodeTransition(seconds(50), "n", "g", came=True)
SCALING = AutoscalingOutcome("karpenter", (), (ADDED,), {}, {})
OWNER = WorkloadRef("ReplicaSet", "ns", "web")
ALL_READY = WorkloadReadiness(wanted=1, before=1, lowest=0, lowest_for=1, at_end=1)
GANGS = GangTally(
    gangs=3, finished=1, broken=1, waits=(GangWaits("q", 2, (1, 2)), GangWaits("r", 1, ()))
)
INCOMPLETE = GangTally(
    gangs=1,
    waits=(GangWaits("q", 1, (1,)),),
    incomplete_for={"ns/g": seconds(3600), "ns/slow-start": seconds(59)},
)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(
            outcome(ON_NODE),
            [("good", "No pod is pending at the end: 1 pod on nodes.")],
            id="a pod has a node",
        ),
        pytest.param(
            outcome(ON_NODE, COMPLETED),
            [("good", "No pod is pending at the end: 1 pod on nodes, and 1 completed.")],
            id="a pod has a node, and another has completed",
        ),
        pytest.param(
            outcome(COMPLETED),
            [("good", "No pod is pending at the end: 1 pod completed.")],
            id="the only pod has completed",
        ),
        pytest.param(
            outcome(ON_NODE, pod("b", reason=FULL)),
            [("bad", "1 of 2 pods is pending at the end: Insufficient cpu.")],
            id="a pod is pending",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                recurrences=(Recurrence("evictions", "pod ns/p is evicted 4 times", 1),),
                errors=(ObjectError("ReplicaSet ns/web", "exceeded quota."),),
            ),
            [
                ("bad", "Pod ns/p is evicted 4 times."),
                ("bad", "ReplicaSet ns/web: exceeded quota."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a loop comes before an error",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                recurrences=(
                    Recurrence("cycle", "a displaces b, b displaces a: once", 1, cycle=("a", "b")),
                    Recurrence("starving", "pods of rs/ns/web, 6 times", 2, OWNER, 6),
                    Recurrence(
                        "cycle", "b displaces a, a displaces b: 2 times", 3, cycle=("a", "b")
                    ),
                    Recurrence("starving", "pods of rs/ns/web, 11 times", 4, OWNER, 11),
                ),
            ),
            [
                (
                    "bad",
                    "B displaces a, a displaces b: 2 times; 1 more loop of displacements.",
                ),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="only the last report of each loop counts",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                recurrences=(Recurrence("starving", "pods were displaced 6 times", 1, OWNER, 6),),
                workloads={OWNER: ALL_READY},
            ),
            [
                (
                    "warning",
                    "Pods were displaced 6 times, and all run at the end.",
                ),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a loop that ended",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                settled=False,
                recurrences=(Recurrence("starving", "pods were displaced 6 times", 1, OWNER, 6),),
                workloads={OWNER: ALL_READY},
            ),
            [
                ("bad", "Pods were displaced 6 times."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a loop may continue after the end of the run",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                errors=(ObjectError("ReplicaSet ns/web", "exceeded quota.", 0, OWNER),),
            ),
            [("good", "No pod is pending at the end: 1 pod on nodes.")],
            id="a workload got its pods later",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                undrained=(Undrained(pod=ON_NODE, cause=UndrainedCause.REFUSED, why="budget"),),
            ),
            [
                ("bad", "A drain does not complete: 1 pod on 1 node cannot be evicted."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a drain is not complete",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                preempted=(preempted(),),
                evicted=(evicted(),) * 2,
                pdb_breaches=(PdbBreach(pdb="ns/web", at=1, pod="ns/a", by="ns/x"),),
            ),
            [
                ("warning", BREACHED),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
                ("good", "1 pod is preempted and 2 pods are evicted."),
            ],
            id="pods are displaced, one of them against a budget",
        ),
        pytest.param(
            outcome(ON_NODE, jobs=JobsOutcome(gangs=GANGS)),
            [
                ("good", "No pod is pending at the end: 1 pod on nodes."),
                ("good", "2 of 3 gangs start, and 1 finishes; 1 is broken by preemption."),
            ],
            id="gangs start and finish",
        ),
        pytest.param(
            outcome(ON_NODE, jobs=JobsOutcome(gangs=INCOMPLETE)),
            [
                ("warning", "Gang ns/g runs with fewer members than its minimum for 1h00m."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
                ("good", "1 of 1 gang starts, and 0 finish."),
            ],
            id="too few members of a gang run",
        ),
        pytest.param(
            outcome(),
            [("good", "No pod is pending at the end.")],
            id="there are no pods",
        ),
        pytest.param(
            outcome(ON_NODE, outage=outage(("a", LossCause.STOPPED_ZONE))),
            [("bad", "1 pod of failed nodes is not back: evictions stopped.")],
            id="all nodes are down",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                pod("b", "m", phase="Running"),
                pod("c", "o", phase="Running"),
                nodes=(node("m", is_ready=True), node("o", is_ready=False)),
                outage=outage(("a", LossCause.STOPPED_ZONE)),
            ),
            [
                ("bad", "1 pod of failed nodes is not back: evictions stopped."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="of three nodes, one has failed and one is not ready",
        ),
        pytest.param(
            outcome(ON_NODE, outage=outage(back_at=2)),
            [("good", "No pod is pending at the end: 1 pod on nodes.")],
            id="a failed node is back",
        ),
        pytest.param(
            outcome(ON_NODE, pod("b", reason=FULL), outage=outage(("b", LossCause.NO_ROOM))),
            [("bad", "1 of 2 pods is pending at the end: Insufficient cpu.")],
            id="a pod of a failed node counts as pending and not as down",
        ),
        pytest.param(
            outcome(evicted=(evicted(),), outage=outage(("a", LossCause.NOT_REPLACED))),
            [
                ("bad", "1 pod is gone for good: nothing replaces ns/a."),
                ("good", "1 pod is evicted."),
            ],
            id="a pod without a controller is gone, and does not count as down",
        ),
        pytest.param(
            outcome(evicted=(evicted(pod("a", "n", owner=OWNER)),)),
            [("good", "1 pod is evicted.")],
            id="a pod with a controller is not gone",
        ),
        pytest.param(
            outcome(evicted=(evicted(COMPLETED),), completed_and_deleted=(COMPLETED,)),
            [
                ("good", "No pod is pending at the end: 1 pod completed."),
                ("good", "1 pod is evicted."),
            ],
            id="a pod that completes while it is evicted is not gone",
        ),
        pytest.param(
            outcome(ON_NODE, settled=False, outage=outage(("a", LossCause.NOT_YET))),
            [("bad", "1 pod is still not running after 1m00s, when the simulation ends.")],
            id="a pod of a failed node may be evicted later",
        ),
        pytest.param(
            outcome(
                ON_NODE,
                drains=(DrainProgress(node="n", begun_at=1, empty_at=None, back_at=None),),
            ),
            [
                (
                    "bad",
                    (
                        "The rolling drain is not finished after 1m00s, when the simulation ends: "
                        "0 of 1 node is back."
                    ),
                ),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a rolling drain is not finished",
        ),
        pytest.param(
            outcome(ON_NODE, deleted_claims=(DeletedClaim("ns/data", "v", "Delete", 1),)),
            [
                (
                    "bad",
                    (
                        "1 PersistentVolumeClaim is deleted, and so is its volume with all data: "
                        "ns/data."
                    ),
                ),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="data is deleted",
        ),
        pytest.param(
            outcome(pod("b", reason=FULL, since=seconds(55)), settled=False, autoscaling=SCALING),
            [
                (
                    "bad",
                    (
                        "1 of 1 pod is pending when the simulation ends, while karpenter adds and "
                        "removes nodes: Insufficient cpu."
                    ),
                ),
            ],
            id="an autoscaler still adds nodes for a pending pod",
        ),
        pytest.param(
            outcome(ON_NODE, pod("b", reason=FULL, priority=-1)),
            [
                (
                    "good",
                    (
                        "No pod is pending at the end (except pods with a negative priority): "
                        "1 pod on nodes."
                    ),
                ),
                (
                    "warning",
                    ("1 pod with a negative priority is pending at the end: Insufficient cpu."),
                ),
            ],
            id="only a pod with a negative priority is pending",
        ),
    ],
)
def test_the_most_severe_finding_about_a_run_comes_first(run, expected):
    assert [(one.severity, one.sentence) for one in run_verdict(run).findings] == expected


def test_the_rows_are_in_order_of_severity():
    kinds = [kind for kind, _ in _TABLE]
    assert kinds == [kind for kind in OutcomeKind if kind in kinds]


def test_each_kind_of_finding_says_what_its_sentence_says():
    run = outcome(ON_NODE, jobs=JobsOutcome(gangs=GANGS), evicted=(evicted(),))
    kinds = [one.kind for one in run_verdict(run).findings]
    assert kinds == [OutcomeKind.NONE_PENDING, OutcomeKind.GANGS, OutcomeKind.DISPLACED]
