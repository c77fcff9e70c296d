"""Evictions: how disruption budgets allow, count and refuse them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.kind import POD, POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.subresource.eviction import evict

LABELS = {"app": "web"}
READY = {"type": "Ready", "status": "True"}
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def budget(name="b", *, allowed=1, selector=None, status=None, **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS} if selector is None else selector, **spec},
        "status": {"disruptionsAllowed": allowed, **(status or {})},
    }


@pytest.fixture
def running(store, pod, now):
    """Stores a running, ready pod default/a on a node; arguments change its status."""

    def put(**status):
        obj = pod(node="n", metadata={"labels": LABELS})
        ready = [READY] if status.pop("ready", True) else []
        obj["status"] = {"phase": "Running", "conditions": ready, **status}
        return store.put_as_is(obj, now)

    return put


@pytest.fixture
def refusal(store, now):
    def attempt(**options):
        version = store.version
        with pytest.raises(ApiError) as refused:
            evict(store, "default", "a", now, **options)
        assert store.version == version
        return refused.value

    return attempt


def allowed_by(store, name="b"):
    return store.get(POD_DISRUPTION_BUDGET, "default", name)["status"]["disruptionsAllowed"]


def test_a_pod_without_labels_is_not_covered_by_a_budget(store, now, pod):
    """When budgets are counted, an empty selector matches every pod."""
    bare = pod(node="n")
    bare["metadata"].pop("labels", None)
    store.put_as_is({**bare, "status": {"phase": "Running", "conditions": [READY]}}, now)
    store.put_as_is(budget(selector={}, allowed=0), now)
    assert evict(store, "default", "a", now)["metadata"]["deletionTimestamp"]


def test_without_a_budget_a_pod_gets_a_condition_and_is_deleted(store, now, running):
    running()
    last = evict(store, "default", "a", now)
    assert last["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert last["status"]["conditions"] == [
        READY,
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]


def test_a_grace_period_can_be_requested(store, now, running):
    running()
    last = evict(store, "default", "a", now, grace_period_s=3)
    assert last["metadata"]["deletionGracePeriodSeconds"] == 3


def test_an_eviction_decrements_the_allowed_disruptions(store, now, running):
    running()
    store.put_as_is(budget(allowed=2), now)
    evict(store, "default", "a", now)
    status = store.get(POD_DISRUPTION_BUDGET, "default", "b")["status"]
    assert status == {
        "disruptionsAllowed": 1,
        "disruptedPods": {"a": "2026-01-01T00:00:00Z"},
    }


def test_the_last_allowed_disruption_changes_the_condition(store, now, running):
    running()
    store.put_as_is(budget(allowed=1), now)
    evict(store, "default", "a", now)
    [condition] = store.get(POD_DISRUPTION_BUDGET, "default", "b")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert condition["reason"] == "InsufficientPods"


def test_a_budget_without_disruptions_refuses(store, now, running, refusal):
    running()
    store.put_as_is(budget(allowed=0, status={"desiredHealthy": 2, "currentHealthy": 2}), now)
    refused = refusal()
    assert (refused.reason, refused.code, refused.message) == ("TooManyRequests", 429, VIOLATES)
    assert refused.retry_after_s == 0
    assert refused.causes == (
        Cause(
            "DisruptionBudget", "The disruption budget b needs 2 healthy pods and has 2 currently"
        ),
    )


def test_a_budget_with_an_incomplete_status_refuses(store, now, running, refusal):
    """A budget whose counts are 0 does not allow the eviction of an unready pod either."""
    running(ready=False)
    unwritten = budget()
    unwritten["status"] = {"currentHealthy": 1}
    store.put_as_is(unwritten, now)
    words = "The disruption budget b needs 0 healthy pods and has 1 currently"
    assert refusal().causes == (Cause("DisruptionBudget", words),)
    store.put_as_is({**unwritten, "status": {}}, now)
    words = "The disruption budget b needs 0 healthy pods and has 0 currently"
    assert refusal().causes == (Cause("DisruptionBudget", words),)


def test_a_budget_with_an_outdated_status_returns_retry_after(store, now, running, refusal):
    running()
    fresh = budget(status={"observedGeneration": 1})
    fresh["metadata"]["generation"] = 2
    store.put_as_is(fresh, now)
    refused = refusal()
    assert (refused.message, refused.retry_after_s) == (VIOLATES, 10)
    assert refused.causes[0].message == (
        "The disruption budget b is still being processed by the server."
    )


def test_a_pod_with_two_budgets_cannot_be_evicted(store, now, running, refusal):
    running()
    store.put_as_is(budget("b"), now)
    store.put_as_is(budget("c", selector={}), now)
    refused = refusal()
    assert (refused.code, refused.message) == (
        500,
        (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource "
            "does not "
            "support."
        ),
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"allowed": -1},
            'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
        ),
        (
            {"status": {"disruptedPods": {str(n): "2026-01-01T00:00:00Z" for n in range(2001)}}},
            (
                'poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many '
                "evictions not confirmed by PDB controller"
            ),
        ),
    ],
    ids=["negative", "too many unconfirmed"],
)
def test_an_invalid_budget_refuses(store, now, running, refusal, settings, words):
    running()
    store.put_as_is(budget(**settings), now)
    assert refusal().message == words


@pytest.mark.parametrize(
    "status",
    [{"phase": "Succeeded"}, {"phase": "Failed"}, {"phase": "Pending"}],
    ids=["finished", "failed", "not started"],
)
def test_finished_and_pending_pods_need_no_budget(store, now, running, status):
    running(**status)
    store.put_as_is(budget(allowed=0), now)
    evict(store, "default", "a", now)
    assert allowed_by(store) == 0


def test_a_terminating_pod_needs_no_budget(store, now, running):
    running()
    store.delete(POD, "default", "a", now)
    store.put_as_is(budget(allowed=0), now)
    assert evict(store, "default", "a", now)["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "outcome"),
    [
        (None, 2, 2, "free"),
        ("IfHealthyBudget", 2, 2, "free"),
        ("IfHealthyBudget", 1, 2, "charged"),
        (None, 0, 0, "charged"),
        ("AlwaysAllow", 0, 2, "free"),
    ],
)
def test_the_eviction_of_an_unready_pod_depends_on_the_policy(
    store, now, running, *, policy, healthy, desired, outcome
):
    """It is free if enough other pods are healthy or the policy is AlwaysAllow."""
    running(ready=False)
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    status = {"currentHealthy": healthy, "desiredHealthy": desired}
    store.put_as_is(budget(status=status, **spec), now)
    evict(store, "default", "a", now)
    assert allowed_by(store) == (1 if outcome == "free" else 0)


@pytest.mark.parametrize(
    ("selector", "guards"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({}, True),
    ],
    ids=["its labels", "other labels", "an expression", "an empty selector: everything"],
)
def test_a_budget_covers_the_pods_that_its_selector_matches(store, now, running, selector, guards):
    running()
    store.put_as_is(budget(selector=selector), now)
    evict(store, "default", "a", now)
    assert allowed_by(store) == (0 if guards else 1)


def test_a_budget_without_selector_or_in_another_namespace_covers_no_pod(store, now, running):
    running()
    nobody = budget("none")
    del nobody["spec"]["selector"]
    elsewhere = budget("elsewhere")
    elsewhere["metadata"]["namespace"] = "other"
    store.put_as_is(nobody, now)
    store.put_as_is(elsewhere, now)
    evict(store, "default", "a", now)
    assert allowed_by(store, "none") == 1


def test_a_missing_pod_or_another_uid_is_refused(store, running, refusal):
    assert refusal().reason == "NotFound"
    running()
    assert refusal(uid="other").reason == "Conflict"
