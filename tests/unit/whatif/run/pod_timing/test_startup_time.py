"""Startup times that a dump shows: from being scheduled to Ready, by workload."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if
from fairlead.whatif.run.pod_timing.startup_time import startup_times


@pytest.fixture
def ready(make):
    """Return a pod that was scheduled at 10:00:00 and became Ready this many seconds later."""

    def ready_pod(name, after_s, owner="web", restarts=0, scheduled="10:00:00"):
        pod = make.pod(name, node_name="a", owner=owner)
        minutes, rest = divmod(after_s, 60)
        hours, minutes = divmod(minutes, 60)
        at = f"{10 + hours:02}:{minutes:02}:{rest:02}"
        pod["metadata"]["creationTimestamp"] = "2026-01-01T10:00:00Z"
        times = {"PodScheduled": scheduled, "Ready": at}
        pod["status"]["conditions"] = [
            {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T{time}Z"}
            for kind, time in times.items()
        ]
        pod["status"]["containerStatuses"] = [{"name": "c", "restartCount": restarts}]
        return pod

    return ready_pod


def learnt(found, *pods):
    times = startup_times(found(*pods)).by_workload
    return {str(ref): time // seconds(1) for ref, time in times.items()}


def test_a_workload_has_the_median_of_its_pods(found, ready):
    pods = [ready("a", 30), ready("b", 40), ready("c", 600), ready("d", 5, "db")]
    assert learnt(found, *pods) == {"rs/default/web": 40, "rs/default/db": 5}


def test_times_that_are_not_startup_times_are_ignored(found, ready, make):
    restarted, late = ready("restarted", 30, restarts=1), ready("late", 4000)
    unready = ready("unready", 30)
    unready["status"]["conditions"][1]["status"] = "False"
    assert learnt(found, restarted, late, unready, make.pod("new")) == {}


def test_a_pod_that_waited_counts_from_when_it_was_scheduled(found, ready):
    assert learnt(found, ready("a", 100, scheduled="10:01:00")) == {"rs/default/web": 40}
    # A scheduled condition after Ready is not the start.
    assert learnt(found, ready("a", 30, scheduled="10:02:00")) == {"rs/default/web": 30}


def test_new_pods_take_as_long_and_the_answer_says_so(snapshot, make, ready):
    web = make.workload("ReplicaSet", "web", replicas=1)
    web["metadata"]["uid"] = "web"
    slow = ready("web-1", 500)
    slow["metadata"]["labels"] = {"app": "web"}
    cluster = snapshot(make.node("a"), make.node("b"), web, slow)
    answer = what_if(cluster, ClusterChange(drain=("a",)))
    assert answer.difference.recovered_after // seconds(1) == 500
    assert answer.changed.settled
    assert answer.changed.notes[-1] == (
        "Pods become ready 8m20s after they are scheduled, as in the dump (--startup-time)."
    )
    fixed = what_if(cluster, ClusterChange(drain=("a",)), Conditions(startup=seconds(7)))
    assert fixed.difference.recovered_after // seconds(1) == 7
    assert (
        fixed.changed.notes[-1]
        == "Every pod becomes ready 7s after it is scheduled (--startup-time)."
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("", ""),
        (
            "b",
            "Pods become ready 40s after they are scheduled, as in the dump (--startup-time).",
        ),
        (
            "abc",
            (
                "Pods become ready 5s to 10m00s (median 40s) after they are scheduled, as in the "
                "dump (--startup-time)."
            ),
        ),
        (
            "bxy",
            (
                "Pods become ready 40s after they are scheduled, as in the dump; 1s is assumed for "
                "rs/default/x and 1 more workload (--startup-time)."
            ),
        ),
        (
            "x",
            (
                "Pods are assumed to become ready 1s after they are scheduled, because the "
                "dump shows no startup times of rs/default/x (--startup-time)."
            ),
        ),
    ],
    ids=["no pods start", "one time", "several times", "some are assumed", "all are assumed"],
)
def test_the_answer_distinguishes_measured_from_assumed_startup_times(found, ready, names, words):
    times = startup_times(found(ready("1", 5, "a"), ready("2", 40, "b"), ready("3", 600, "c")))
    assert times.words_for([WorkloadRef("ReplicaSet", "default", name) for name in names]) == words
