"""Pods for which the node autoscaler adds no node for some time, and notes about them."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.refusal import RefusalLog
from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.autoscaling.refused_pod import refused_notes, refused_pods
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.workload import WorkloadRef

WEB, API = (WorkloadRef("Deployment", "a", name) for name in ("w", "v"))


def wait(pod, workload=WEB, until_s=600):
    until = None if until_s is None else seconds(until_s)
    return PodWait(f"shop/old-{pod}", workload, 0, until, key=f"shop/{pod}")


@pytest.fixture
def log():
    found = RefusalLog()
    found.update({f"shop/{n}": f"reason {min(n, 4) // 2}" for n in range(6)}, 0)
    return found


def test_the_notes_name_the_workloads_the_reason_and_the_longest_time(log):
    waits = [wait(0, until_s=90), wait(1, API), wait(2), wait(3), wait(4), wait(5, API)]
    assert [*refused_notes(refused_pods(log, waits), "karpenter")] == [
        "For up to 10m00s, karpenter adds no node for 2 pods of deploy/a/w, deploy/a/v: reason 0.",
        "For up to 10m00s, karpenter adds no node for 2 pods of deploy/a/w: reason 1.",
        "For a minute or longer, karpenter adds no node for 2 more pods, for other reasons.",
    ]


@pytest.mark.parametrize("until_s", [None, 59])
def test_pods_that_still_wait_or_waited_less_than_a_minute_are_left_out(log, until_s):
    assert refused_pods(log, [wait(0, until_s=until_s)]) == ()
