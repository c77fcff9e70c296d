"""Shortages of ready pods while an autoscaler wants more pods than at the end."""

from __future__ import annotations

import pytest
from tests.unit.whatif.outcome.assessment.test_verdict import outcome

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome, ReplicaChange
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.comparison.effect import effect_of
from fairlead.whatif.outcome.comparison.peak_shortage import Level, peak_shortages
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef

WEB = WorkloadRef("Deployment", "ns", "web")


def run(ready, waits=(), peak=10):
    """Return a run in which the autoscaler wants 10 pods from 10 s to 1,000 s, and else 3.

    From 500 s to 1,000 s, it wants `peak` pods.
    `ready` maps seconds to the number of ready pods from then on. `waits` are the times, in
    seconds, in which a pod waits for a node.
    """
    history = tuple((seconds(at), count) for at, count in ready.items())
    changes = (
        ReplicaChange(seconds(10), 3, 10, "load"),
        ReplicaChange(seconds(500), 10, peak, "load"),
        ReplicaChange(seconds(1000), peak, 3, "load"),
    )
    web = WorkloadReadiness(wanted=3, before=3, lowest=3, lowest_for=0, at_end=3, history=history)
    scaler = PodAutoscalerOutcome(
        autoscaler="ns/web", target="Deployment web", minimum=3, maximum=20, replicas=3,
        changes=changes,
    )  # fmt: skip
    return outcome(
        ended_at=seconds(2000),
        workloads={WEB: web},
        pod_autoscalers=(scaler,),
        waits=tuple(PodWait("ns/p", WEB, *map(seconds, one)) for one in waits),
    )


CALM = {130: 10, 1000: 3}
FEWER = {130: 10, 500: 6, 1000: 3}  # 4 of 10 pods fail


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        pytest.param(run(CALM), None, id="pods only start"),
        pytest.param(run({130: 10, 500: 6, 560: 10, 1000: 3}), Level(6, 10), id="pods fail"),
        pytest.param(run({130: 10, 500: 6, 559: 10, 1000: 3}), None, id="pods fail briefly"),
        pytest.param(run({130: 10, 500: 8, 900: 10, 1000: 3}), None, id="enough pods are left"),
        pytest.param(run({130: 6, 1000: 3}, [(10, 1000)] * 4), Level(6, 10), id="pods wait"),
        pytest.param(run({130: 9, 1000: 3}, [(10, 1000)]), None, id="one pod waits"),
        pytest.param(run(FEWER, peak=20), None, id="pods only start after a failure"),
        pytest.param(run(FEWER, [(500, 1000)] * 4, 20), None, id="the failed pods wait"),
        pytest.param(run(FEWER, [(500, 1000)] * 9, 20), Level(11, 20), id="also new pods wait"),
        pytest.param(run({130: 10, 1000: 3, 1500: 2}), None, id="enough of the fewer pods"),
    ],
)
def test_a_shortage_at_a_peak(changed, level):
    found = peak_shortages(
        effect_of(run(CALM), changed), lambda one: 100 * one.ready < 65 * one.wanted
    )
    assert dict(found) == ({} if level is None else {WEB: level})


def test_a_shortage_without_the_change_does_not_count():
    few = run({130: 6, 1000: 3}, [(10, 1000)] * 4)
    assert not dict(peak_shortages(effect_of(few, few), lambda one: one.ready < one.wanted))
