"""Status patches and events of a PodDisruptionBudget.

upstream: pkg/controller/disruption/disruption.go:updatePdbStatus, failSafe;
component-helpers/apps/poddisruptionbudget/helpers.go:UpdateDisruptionAllowedCondition
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.codec import as_json
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.disruption.budget import BudgetStatus
from fairlead.engine.workloads.identity import CONTROLLER_NAMES, object_ref, owner_event

KIND: Final = "PodDisruptionBudget"
ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT: Final = "SufficientPods"
INSUFFICIENT: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"
NO_PODS: Final = "NoPods"
UNMANAGED: Final = "UnmanagedPods"
SEVERAL_BUDGETS: Final = "MultiplePodDisruptionBudgets"


def status_patch(view: PodDisruptionBudget, status: BudgetStatus) -> PatchStatus:
    """Return the patch that writes the computed status."""
    allowed = status.disruptions_allowed
    fields: dict[str, Any] = {
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": status.expected_pods,
        "observedGeneration": view.metadata.generation,
    }
    before, after = view.status.disrupted_pods, status.disrupted_pods
    if after != before:
        # The merge patch names individual pods, so that entries which the eviction API adds
        # meanwhile are kept.
        fields["disruptedPods"] = {name: after.get(name) for name in before}
    condition = (
        Condition(ALLOWED, "True", SUFFICIENT)
        if allowed
        else Condition(ALLOWED, "False", INSUFFICIENT)
    )
    return PatchStatus(object_ref(view), fields, (condition,))


def failure_patch(view: PodDisruptionBudget, message: str) -> PatchStatus:
    """Return the patch for a budget whose status cannot be computed: it allows no disruptions.

    `message` is the error text for the condition.
    """
    condition = Condition(ALLOWED, "False", SYNC_FAILED, message)
    return PatchStatus(object_ref(view), {"disruptionsAllowed": 0}, (condition,))


ConditionForm = Callable[[PatchStatus, PodDisruptionBudget, Instant], PatchStatus]


def short_conditions(patch: PatchStatus, _view: PodDisruptionBudget, _now: Instant) -> PatchStatus:
    """Return `patch` unchanged: its conditions have no generation and no transition time.

    A simulation does not need these fields.
    """
    return patch


def full_conditions(patch: PatchStatus, view: PodDisruptionBudget, now: Instant) -> PatchStatus:
    """Return `patch`, and add to its conditions the fields that upstream writes.

    The added fields are observedGeneration and lastTransitionTime. Each condition gets the
    observedGeneration that `patch` sets. If `patch` sets no observedGeneration (see
    `failure_patch`), each condition gets the observedGeneration of the old status.
    """
    # upstream: apimachinery/pkg/api/meta/conditions.go:SetStatusCondition
    seen = patch.fields.get("observedGeneration", view.status.observed_generation)
    entries: dict[str, Mapping[str, Any]] = {
        one.get("type", ""): one for one in view.status.conditions
    }
    for one in patch.conditions:
        before = entries.get(one.type, {})
        since = before.get("lastTransitionTime") if before.get("status") == one.status else None
        entries[one.type] = {
            "type": one.type,
            "status": one.status,
            **({"observedGeneration": seen} if seen else {}),
            "lastTransitionTime": since or format_timestamp(now),
            "reason": one.reason,
            "message": one.message,
        }
    return PatchStatus(patch.target, {**patch.fields, "conditions": list(entries.values())})


def pods_warning(view: PodDisruptionBudget, reason: str) -> RecordEvent:
    """Return the event about a budget's pods: Normal for NO_PODS, Warning for UNMANAGED."""
    # upstream: pkg/controller/disruption/disruption.go:trySync
    if reason == NO_PODS:
        return owner_event(object_ref(view), NO_PODS, "No matching pods found")
    from fairlead.api.text.go_selector import go_selector  # noqa: PLC0415 - rarely needed

    selector = view.spec.selector
    shown = go_selector(None if selector is None else as_json(selector))
    note = (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may "
        "result in undefined behavior. To account for these pods please set "
        '".spec.minAvailable" field of the PDB to an integer value.'
    )
    return owner_event(object_ref(view), UNMANAGED, note, is_warning=True)


def several_budgets_warning(pod: ObjectRef, chosen: str) -> RecordEvent:
    """Return the warning about a pod that several budgets select.

    `chosen` is the budget that the warning names. The caller passes the first name in alphabetical
    order.
    """
    # upstream: disruption.go:getPdbForPod, which syncs only that budget
    note = (
        f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.  '
        f'Chose "{chosen}" arbitrarily.'
    )
    return RecordEvent(
        regarding=pod,
        type="Warning",
        reason=SEVERAL_BUDGETS,
        action=SEVERAL_BUDGETS,
        note=note,
        reporting_controller=CONTROLLER_NAMES[KIND],
    )


def count_warning(view: PodDisruptionBudget, message: str) -> RecordEvent:
    """Return the event that reports why the number of expected pods cannot be computed."""
    note = f"Failed to calculate the number of expected pods: {message}"
    return owner_event(object_ref(view), "CalculateExpectedPodCountFailed", note, is_warning=True)
