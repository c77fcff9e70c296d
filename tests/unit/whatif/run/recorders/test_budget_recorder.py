"""Breaches of disruption budgets."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.testing.builders import make_pod
from fairlead.whatif.run.recorders.budget_recorder import BudgetRecorder


def pod(name: str) -> Pod:
    """A pod that the budget selects."""
    return make_pod(name, namespace="shop", labels={"app": "web"})


@pytest.fixture
def recorder() -> BudgetRecorder:
    """A recorder that knows a budget which allows one disruption."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1},
    }
    recorder = BudgetRecorder()
    recorder.observe(decode_as(PodDisruptionBudget, budget), 0)
    return recorder


def test_pods_that_are_evicted_at_one_time_use_up_the_budget_together(
    recorder: BudgetRecorder,
) -> None:
    """The status of the budget is updated only after all evictions."""
    recorder.evicted(pod("a"), "taint x", 1)
    recorder.evicted(pod("b"), "taint x", 1)
    recorder.collected(pod("c"), 1)
    assert [(one.pod, one.by) for one in recorder.breaches] == [
        ("shop/b", "taint x"),
        ("shop/c", "node deleted"),
    ]


def test_later_evictions_count_against_the_status_at_their_time(recorder: BudgetRecorder) -> None:
    """The budget allows a disruption again."""
    recorder.evicted(pod("a"), "taint x", 1)
    recorder.evicted(pod("b"), "taint x", 2)
    assert recorder.breaches == []


@pytest.mark.parametrize(("healthy", "breaches"), [(2, []), (1, ["shop/a"])])
def test_an_unready_pod_is_lost_against_a_budget_only_if_too_few_others_are_healthy(
    healthy: int, breaches: list[str]
) -> None:
    """As for the eviction API, which evicts unready pods while the budget is met."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"currentHealthy": healthy, "desiredHealthy": 2, "disruptionsAllowed": 0},
    }
    recorder = BudgetRecorder()
    recorder.observe(decode_as(PodDisruptionBudget, budget), 0)
    recorder.evicted(pod("a"), "taint x", 1)
    assert [one.pod for one in recorder.breaches] == breaches


@pytest.mark.parametrize(("expected", "breaches"), [(1, []), (0, ["shop/a"])])
def test_a_budget_that_needs_no_healthy_pod_is_not_broken_by_the_loss_of_an_unready_pod(
    expected: int, breaches: list[str]
) -> None:
    """One pod may be unavailable, and the only pod is; a status without pods is not computed."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"expectedPods": expected, "disruptionsAllowed": 0},
    }
    recorder = BudgetRecorder()
    recorder.observe(decode_as(PodDisruptionBudget, budget), 0)
    recorder.evicted(pod("a"), "taint x", 1)
    assert [one.pod for one in recorder.breaches] == breaches


@pytest.mark.parametrize(
    ("statuses", "lowest", "needed", "shortage"),
    [
        # An autoscaler adds 4 pods, and removes 4 after the peak.
        (((10, 8), (10, 12), (14, 12), (12, 12), (14, 12), (14, 8), (8, 8)), 8, 8, 0),
        (((10, 8), (10, 12), (14, 12), (9, 12), (14, 12), (14, 8), (8, 8)), 9, 12, 3),
        (((10, 8), (10, 12), (14, 12)), 10, 12, 0),
        (((10, 8), (7, 8), (9, 8)), 7, 8, 1),
    ],
    ids=["held", "not held", "only a scale-up", "constant"],
)
def test_lowest_healthy_pods_and_needed_pods_are_from_the_same_instant(
    statuses: tuple[tuple[int, int], ...],
    lowest: int,
    needed: int,
    shortage: int,
) -> None:
    """Otherwise a budget that holds could need 12 pods of which only 8 are healthy."""
    recorder = BudgetRecorder()
    for at, (healthy, desired) in enumerate(statuses):
        budget = {
            "metadata": {"name": "b", "namespace": "shop"},
            "spec": {"minAvailable": "80%", "selector": {"matchLabels": {"app": "web"}}},
            "status": {"currentHealthy": healthy, "desiredHealthy": desired},
        }
        recorder.observe(decode_as(PodDisruptionBudget, budget), at)
    [found] = recorder.histories(0)
    assert (found.lowest_healthy, found.needed, found.shortage) == (lowest, needed, shortage)


def test_the_budgets_of_a_pod_are_found_again_after_a_change_of_budgets() -> None:
    """A budget may be created, deleted, or get another selector."""
    found = []
    recorder = BudgetRecorder()
    for name, app in (("b", "web"), ("c", "web"), ("b", "other")):
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
        meta = {"name": name, "namespace": "shop"}
        budget = decode_as(PodDisruptionBudget, {"metadata": meta, "spec": spec})
        recorder.observe(budget, 0)
        found.append([one.metadata.name for one in recorder.covering(pod("a"))])
    recorder.forget(recorder.covering(pod("a"))[0])
    found.append([one.metadata.name for one in recorder.covering(pod("a"))])
    assert found == [["b"], ["b", "c"], ["c"], []]


@pytest.mark.parametrize(
    ("healthy", "pods", "lowest"),
    [
        ([0, 1, 3], 0, 3),
        ([0, 3, 2, 3], 0, 2),
        ([0, 0], 0, 0),
        ([0, 1, 3], 3, 0),
        ([4, 2, 4], 4, 2),
        ([2, 4], 2, 2),
    ],
)
def test_new_pods_are_not_missing_before_they_start(
    healthy: list[int], pods: int, lowest: int
) -> None:
    """The first number counts if the budget had pods, even if none of them was healthy."""
    recorder = BudgetRecorder()
    for at, count in enumerate(healthy):
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "shop"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
            "status": {
                "currentHealthy": count,
                "desiredHealthy": 2,
                "disruptionsAllowed": 0,
                "expectedPods": pods,
            },
        }
        recorder.observe(decode_as(PodDisruptionBudget, budget), at)
    (history,) = recorder.histories(0)
    assert history.lowest_healthy == lowest
