"""Workloads that a change affects: unready pods that only one of the runs has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.whatif.outcome.comparison.difference import difference
from fairlead.whatif.outcome.comparison.workload_effect import workload_effects
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef

AGENT = WorkloadRef("DaemonSet", "kube-system", "agent")


def run(pods=(), **readiness):
    empty = dict.fromkeys(
        ("preempted", "evicted", "pdb_breaches", "undrained", "skipped", "errors",
         "recurrences", "nodes", "allocations", "samples"),
        (),
    )  # fmt: skip
    return RunOutcome(
        started_at=0, ended_at=0, settled=True, pods={pod.key: pod for pod in pods},
        priority_names={},
        choices_among_equals=0, workloads={AGENT: WorkloadReadiness(**readiness)}, **empty,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("readiness", "is_affected"),
    [
        pytest.param({"lowest": 3, "lowest_for": 45}, False, id="as many pods as wanted"),
        pytest.param({"lowest": 2, "lowest_for": 45}, True, id="fewer pods than wanted"),
        pytest.param({"lowest": 2, "lowest_for": None, "at_end": 2}, True, id="fewer at the end"),
    ],
)
def test_pods_that_leave_with_their_nodes_in_both_runs_are_no_effect(readiness, is_affected):
    """Three of six nodes are removed in both runs, at different times."""
    counts = {"wanted": 3, "before": 6, "at_end": 3}
    without = run(**counts, lowest=3, lowest_for=50)
    changed = run(**(counts | readiness))
    found = workload_effects(without, changed, difference(without, changed), (), (), ())
    assert [one.workload for one in found] == [AGENT] * is_affected


@pytest.mark.parametrize(
    ("lowest_for", "is_harmed"),
    [
        pytest.param(40, False, id="shorter than without the change"),
        pytest.param(60, True, id="longer than without the change"),
        pytest.param(None, True, id="until the end"),
    ],
)
def test_no_ready_pod_harms_only_if_it_lasts_longer_than_without_the_change(lowest_for, is_harmed):
    counts = {"wanted": 3, "before": 3, "lowest": 0, "at_end": 3}
    without, changed = run(**counts, lowest_for=50), run(**counts, lowest_for=lowest_for)
    [found] = workload_effects(without, changed, difference(without, changed), (), (), ())
    assert (found.had_no_ready_pod, found.is_harmed) == (is_harmed, is_harmed)


def test_the_same_dip_with_another_history_is_no_effect():
    """The history of a workload with a HorizontalPodAutoscaler has the times of all changes."""
    counts = {"wanted": 3, "before": 3, "lowest": 2, "lowest_for": 45, "at_end": 3}
    without, changed = (
        run(**counts, history=((at, 2), (at + 45, 3), (90, 4), (95, 3))) for at in (10, 20)
    )
    assert workload_effects(without, changed, difference(without, changed), (), (), ()) == []


@pytest.mark.parametrize(("lowest", "is_down"), [(0, True), (1, False)])
def test_a_workload_is_down_without_the_change_only_if_both_runs_lack_ready_pods(lowest, is_down):
    """The times are comparable only if no pod was ready in both runs."""
    counts = {"wanted": 3, "before": 3, "at_end": 3}
    without = run(**counts, lowest=0, lowest_for=50)
    changed = run(**counts, lowest=lowest, lowest_for=40)
    [found] = workload_effects(without, changed, difference(without, changed), (), (), ())
    assert found.is_down_without == is_down


@pytest.mark.parametrize("touched", [None, frozenset({"x/a-0", "x/b-0"})])
def test_of_equally_harmed_workloads_the_one_of_the_highest_priority_comes_first(touched):
    """Then the names decide. Both pods of `e` are lost, so it comes first.

    Negative priorities come last: both pods of `p` are lost, too.
    """
    priorities = {"a": 0, "b": 1000, "c": 5, "d": 1000, "e": 5, "p": -5}
    pods = [
        PodEnd(namespace="x", name=f"{name}-{number}", node="n", priority=priority, is_initial=True,
               owner=WorkloadRef("ReplicaSet", "x", name))
        for name, priority in priorities.items()
        for number in range(1 + (name in "ep"))
    ]  # fmt: skip
    without, changed = (
        replace(run(found, wanted=1, before=1, lowest=1, lowest_for=None, at_end=1), touched=keys)
        for found, keys in ((pods, touched), ([replace(pod, node="") for pod in pods], touched))
    )
    found = difference(without, changed)
    assert len(found.pending) == (8 if touched is None else 2)
    effects = workload_effects(without, changed, found, (), (), ())
    expected = "ebdcap" if touched is None else "ba"
    assert [one.workload.name for one in effects] == list(expected)
