"""The subresource `eviction` of pods: a deletion that PodDisruptionBudgets may refuse.

The first of these rules that applies to a pod decides its eviction:

1. A pod that is finished, terminating or Pending is deleted without a budget check.
2. A pod that no budget selects is deleted. If several budgets select a pod, the eviction fails.
3. An unready pod is deleted if enough other pods are healthy, or if the budget always allows the
   eviction of unhealthy pods. Its budget does not change.
4. Every other eviction fails if disruptionsAllowed of the pod's budget is 0. If the number is not
   0, it is decremented, and the pod is deleted. Later, the disruption controller recomputes the
   number.

upstream: pkg/registry/core/pod/storage/eviction.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import PodDisruptionBudgetSpec
from fairlead.api.selector import selector_matches
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.error import ApiError, Cause, forbidden, too_many_requests
from fairlead.apiserver.kind import POD, POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.precondition import require
from fairlead.apiserver.registry.store import Store

DISRUPTED_PODS_MAX: Final = 2_000
RETRY_AFTER_S: Final = 10
VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_SINGULAR: Final = "poddisruptionbudget.policy"  # the name in upstream's errors
_PHASES_THAT_IGNORE_PDB: Final = ("Succeeded", "Failed", "Pending")
# upstream: component-helpers/apps/poddisruptionbudget/helpers.go:UpdateDisruptionAllowedCondition
_EXHAUSTED: Final = {
    "type": "DisruptionAllowed",
    "status": "False",
    "reason": "InsufficientPods",
}


def evict(  # noqa: PLR0913 - the parts of one request
    store: Store,
    namespace: str,
    name: str,
    now: int,
    *,
    grace_period_s: int | None = None,
    uid: str = "",
    resource_version: str = "",
    dry_run: bool = False,
) -> Json:
    """Delete the pod if its budget allows this; return the deleted pod.

    If a grace period or a finalizer keeps the pod, the returned pod is terminating. If
    `grace_period_s` is None, the pod's own grace period applies. A non-empty `uid` or
    `resource_version` is a precondition. A `dry_run` runs all checks but changes nothing, and
    returns the unchanged pod. Raises ApiError 404 if the pod does not exist, and 409 if a
    precondition fails. Raises ApiError 429 if the budget allows no disruption, or if the disruption
    controller has not yet processed the budget's last change. Raises ApiError 403 if the budget's
    status is invalid, and 500 if several budgets select the pod.
    """
    pod = store.get(POD, namespace, name)
    require(POD, pod, uid=uid or None, resource_version=resource_version or None)
    if not _can_ignore_pdb(pod):
        _charge_budget(store, pod, now, dry_run=dry_run)
    if dry_run:
        return pod
    conditions = pod["status"].get("conditions", ())
    targeted = with_conditions(conditions, (_TARGETED,), format_timestamp(now))
    store.write(POD, pod, {**pod, "status": {**pod["status"], "conditions": targeted}})
    return store.delete(
        POD, namespace, name, now, Deletion(grace_period_s=grace_period_s, policy="Background")
    )


def budgets_of(store: Store, pod: Json) -> list[Json]:
    """Return the PodDisruptionBudgets that guard `pod`, sorted by name.

    No budget guards a pod without labels. A budget with an empty selector guards all pods of its
    namespace that have labels.
    """
    labels, namespace = pod["metadata"].get("labels", {}), pod["metadata"]["namespace"]
    if not labels:  # upstream: eviction.go:getPodDisruptionBudgets
        return []
    # A drain repeats refused evictions, so this does not read the budgets of other namespaces.
    names = store.storage.list_keys(POD_DISRUPTION_BUDGET, namespace)
    budgets = [store.get(POD_DISRUPTION_BUDGET, namespace, name) for name in names]
    return [
        one
        for one in budgets
        if selector_matches(
            decode_as(PodDisruptionBudgetSpec, one.get("spec", {})).selector, labels
        )
    ]


def _can_ignore_pdb(pod: Json) -> bool:
    phase = pod["status"].get("phase")
    return phase in _PHASES_THAT_IGNORE_PDB or bool(pod["metadata"].get("deletionTimestamp"))


def _charge_budget(store: Store, pod: Json, now: int, *, dry_run: bool) -> None:
    budgets = budgets_of(store, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        raise ApiError("", 500, SEVERAL)
    [budget] = budgets
    if not _is_ready(pod) and _spares_unhealthy(budget):
        return
    refusal = _refusal(budget)
    if refusal:
        raise refusal
    if dry_run:
        return
    _decrement(store, budget, pod["metadata"]["name"], now)


def _is_ready(pod: Json) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions", ())
    )


def _spares_unhealthy(budget: Json) -> bool:
    """Return whether the eviction of an unready pod does not count against `budget`."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _refusal(budget: Json) -> ApiError | None:
    """Return the error that refuses an eviction; None if `budget` allows the eviction."""
    meta, status = budget["metadata"], budget.get("status", {})
    name, namespace = meta["name"], meta["namespace"]
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        return too_many_requests(
            VIOLATES, Cause("DisruptionBudget", text), retry_after_s=RETRY_AFTER_S
        )
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        return forbidden(POD_DISRUPTION_BUDGET, namespace, name, why, resource=_SINGULAR)
    if len(status.get("disruptedPods", {})) > DISRUPTED_PODS_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return forbidden(POD_DISRUPTION_BUDGET, namespace, name, why, resource=_SINGULAR)
    if allowed == 0:
        text = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
        return too_many_requests(VIOLATES, Cause("DisruptionBudget", text))
    return None


def _decrement(store: Store, budget: Json, pod_name: str, now: int) -> None:
    timestamp = format_timestamp(now)
    status = budget["status"]
    left = status["disruptionsAllowed"] - 1
    charged = {
        **status,
        "disruptionsAllowed": left,
        "disruptedPods": {**status.get("disruptedPods", {}), pod_name: timestamp},
    }
    if left == 0:
        conditions = status.get("conditions", ())
        exhausted = {**_EXHAUSTED, "observedGeneration": status.get("observedGeneration", 0)}
        charged["conditions"] = with_conditions(conditions, (exhausted,), timestamp)
    store.write(POD_DISRUPTION_BUDGET, budget, {**budget, "status": charged})
