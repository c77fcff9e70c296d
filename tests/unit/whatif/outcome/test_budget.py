"""The disruptions that budgets allowed before the change, and whether the budgets held."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import LabelSelector
from fairlead.cli.output.markdown import markdown_answer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.budget import BudgetResult, budget_outcomes
from fairlead.whatif.outcome.run_outcome import BudgetHistory, PodEnd, RunOutcome
from fairlead.whatif.question import what_if

TODAY = BudgetHistory(
    pdb="ns/web", rule="maxUnavailable 2", allowed=2, allowed_at_end=2, needed=3,
    lowest_healthy=5, displaced=(), refused=(),
)  # fmt: skip
DRAINED = replace(TODAY, allowed=0, lowest_healthy=3, displaced=("ns/web-0", "ns/web-1"))


def run(**fields):
    facts = {
        "started_at": 0, "ended_at": 60, "settled": True, "pods": {}, "nodes": (),
        "preempted": (), "evicted": (), "pdb_breaches": (), "undrained": (), "skipped": (),
        "errors": (), "recurrences": (), "allocations": (), "priority_names": {},
        "samples": (), "choices_among_equals": 0,
    }  # fmt: skip
    return RunOutcome(**{**facts, **fields})


def outcome(history):
    """Return the outcome with the only budget; without the change, it has the state `TODAY`."""
    [found] = budget_outcomes(run(budgets=(TODAY,)), run(budgets=(history,)), ())
    return found


def test_evictions_at_the_instant_of_the_change_do_not_reduce_allowed_disruptions():
    assert outcome(DRAINED).allowed == 2


def test_a_changed_rule_determines_the_allowed_disruptions():
    found = outcome(replace(DRAINED, rule="maxUnavailable 0", allowed_at_end=0))
    assert (found.allowed, found.allowed_without) == (0, 2)


def test_a_budget_with_an_equal_shortage_without_the_change_is_not_listed():
    lacking = replace(TODAY, shortage=1)
    assert budget_outcomes(run(budgets=(lacking,)), run(budgets=(lacking,)), ()) == []


class CountedPods(dict):
    """Pods at the end of a run; `reads` counts how often all of them are read."""

    reads = 0

    def values(self):
        self.reads += 1
        return super().values()


def test_the_pods_are_read_once_for_all_budgets():
    """A failure can leave thousands of budgets without a healthy pod."""
    selector = LabelSelector(match_labels={"app": "web"})
    budgets = tuple(
        replace(TODAY, pdb=f"{namespace}/web", lowest_healthy=0, shortage=3, selector=selector)
        for namespace in ("a", "b", "c")
    )
    pods = CountedPods(x=PodEnd(namespace="b", name="x", labels={"app": "web", "n": "0"}))
    found = budget_outcomes(run(), run(budgets=budgets, pods=pods), ())
    assert {one.pdb: one.shortage for one in found} == {"a/web": 0, "b/web": 3, "c/web": 0}
    assert pods.reads == 1


@pytest.fixture
def web(make):
    """Nodes a and b, a pod of a ReplicaSet on each, and the budget of both pods."""
    workload = make.workload("ReplicaSet", replicas=2)
    workload["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{node}", node_name=node, owner="web") for node in "ab"]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    return [make.node("a"), make.node("b"), workload, *pods, budget]


HEALTH = "The lowest number of healthy pods of a budget includes pods of failed nodes"


@pytest.mark.parametrize(
    ("lasts", "how", "state", "healthy"),
    [
        ("2m", "paused", BudgetResult.UNMET, 1),
        ("20s", "paused", None, None),
        ("20s", "stopped", BudgetResult.UNMET, 1),
    ],
    ids=[
        "the node is marked not ready",
        "the node returns before that",
        "the containers start again when the node returns",
    ],
)
def test_a_budget_can_be_unmet_although_no_pod_is_evicted(
    snapshot, web, lasts, how, state, healthy
):
    """Its pods are down on a failed node, which returns before they are evicted."""
    change = ClusterChange(failures=Failures(fail_node=("a",), how=how), lasts=lasts)
    answer = what_if(snapshot(*web), change)
    effect = answer.effect
    assert not effect.difference.evicted
    assert [(one.state, one.lowest_healthy) for one in effect.budgets] == (
        [(state, healthy)] if state else []
    )
    [row] = [one for one in effect.workloads if one.workload.name == "web"]
    assert (row.readiness.lowest, row.budget) == (1, state)
    if state is BudgetResult.UNMET:
        assert state.words == "too few healthy"
        assert "too few healthy" in markdown_answer(answer, (), "")
        assert effect.budgets[0].words == "1 healthy pod too few, none displaced against it"


@pytest.mark.parametrize("status", [None, {"expectedPods": 2, "desiredHealthy": 1}])
def test_unready_pods_of_the_dump_are_missing_from_the_beginning(snapshot, web, status):
    """The dump may lack the status of the budget. The replacement of the evicted pod is ready."""
    for one in web:
        if one["kind"] == "Pod":
            one["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    budget = web[-1]
    budget["spec"] |= {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    budget.pop("status", None)
    budget |= {} if status is None else {"status": status}
    [found] = what_if(snapshot(*web), ClusterChange(drain=("a",))).effect.budgets
    assert (found.displaced, found.lowest_healthy) == (1, 0)


def test_a_note_says_that_budgets_count_pods_of_deleted_nodes(snapshot, web):
    """Pod web-a is gone with its node, but counts as healthy until it is deleted after 40 s."""
    words = "healthy pods of a budget includes pods of deleted nodes until pod garbage collection"
    for delete, lowest, healthy in (
        (("node/a", "pod/default/web-b"), 0, 1),
        (("node/a",), 1, 1),
    ):
        answer = what_if(snapshot(*web), ClusterChange(delete=delete))
        [row] = [one for one in answer.effect.workloads if one.workload.name == "web"]
        [budget] = answer.effect.budgets
        assert (row.readiness.lowest, budget.lowest_healthy) == (lowest, healthy)
        assert any(words in one for one in answer.changed.notes) == (lowest < healthy)


def test_a_scale_up_does_not_leave_a_budget_unmet(snapshot, web):
    """The budget needs more pods before they are ready, but lacks none that it had."""
    web[-1]["spec"]["minAvailable"] = "100%"
    answer = what_if(snapshot(*web), ClusterChange(scale=("rs/default/web=4",)))
    assert answer.effect.budgets == ()


@pytest.mark.parametrize(
    ("change", "unmet"),
    [
        (ClusterChange(scale=("rs/default/web=1",)), [(BudgetResult.UNMET, 1)]),
        (ClusterChange(delete=("pod/default/app=web",)), [(BudgetResult.UNMET, 2)]),
        (ClusterChange(scale=("rs/default/web=0",)), []),
        (ClusterChange(delete=("rs/default/web",)), []),
    ],
    ids=[
        "fewer replicas than the budget needs",
        "all pods are replaced at once",
        "no replicas",
        "the workload is deleted",
    ],
)
def test_a_change_that_deletes_pods_at_once_can_leave_a_budget_unmet(snapshot, web, change, unmet):
    """The budget had these pods before the change. A budget whose pods are all removed is met."""
    effect = what_if(snapshot(*web), change).effect
    assert [(one.state, one.shortage) for one in effect.budgets] == unmet


def test_a_note_explains_that_a_budget_counts_more_pods_than_its_workload(snapshot, web):
    """The new pod runs before the failed node is marked not ready."""
    change = ClusterChange(
        failures=Failures(fail_node=("a",)), lasts="20m", scale=("rs/default/web=3",)
    )
    effect = what_if(snapshot(*web), change).effect
    [row] = [one for one in effect.workloads if one.workload.name == "web"]
    [budget] = effect.budgets
    assert row.readiness.lowest < budget.lowest_healthy
    assert any(HEALTH in note for note in effect.changed.notes)
