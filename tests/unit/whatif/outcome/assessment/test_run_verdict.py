"""The verdict about one run, such as that of a scenario."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.assessment.run_verdict import run_findings
from fairlead.whatif.outcome.jobs import GangTally, GangWaits, JobsOutcome
from fairlead.whatif.outcome.run_outcome import (
    Evicted,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    Recurrence,
    RunOutcome,
    Undrained,
    UndrainedCause,
)


def pod(name, node="", reason="", phase="Pending"):
    return PodEnd(namespace="ns", name=name, node=node, phase=phase, reason=reason)


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


GANGS = GangTally(
    gangs=3, finished=1, broken=1, waits=(GangWaits("q", 2, (1, 2)), GangWaits("r", 1, ()))
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
                recurrences=(Recurrence("wasted", "pod ns/p was nominated 3 times", 1),),
                errors=(ObjectError("ReplicaSet ns/web", "exceeded quota."),),
            ),
            [
                ("bad", "Pod ns/p was nominated 3 times."),
                ("bad", "ReplicaSet ns/web: exceeded quota."),
                ("good", "No pod is pending at the end: 1 pod on nodes."),
            ],
            id="a loop comes before an error",
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
                evicted=(Evicted(pod=ON_NODE, node="n", at=1, why="drain"),) * 2,
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
        pytest.param(outcome(), [], id="there are no pods"),
    ],
)
def test_the_most_severe_finding_about_a_run_comes_first(run, expected):
    assert [(one.severity, one.sentence) for one in run_findings(run)] == expected
