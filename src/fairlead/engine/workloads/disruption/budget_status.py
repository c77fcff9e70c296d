"""What is written into the status of a PodDisruptionBudget.

upstream: pkg/controller/disruption/disruption.go:updatePdbStatus, failSafe;
component-helpers/apps/poddisruptionbudget/helpers.go:UpdateDisruptionAllowedCondition
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.api.codec import as_json
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.disruption.budget import Standing
from fairlead.engine.workloads.identity import owner_event

KIND: Final = "PodDisruptionBudget"
ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT: Final = "SufficientPods"
INSUFFICIENT: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"
NO_PODS: Final = "NoPods"
UNMANAGED: Final = "UnmanagedPods"


def standing_patch(view: PodDisruptionBudget, standing: Standing) -> PatchStatus:
    """Write where the budget stands."""
    allowed = standing.disruptions_allowed
    fields: dict[str, Any] = {
        "currentHealthy": standing.current_healthy,
        "desiredHealthy": standing.desired_healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": standing.expected_pods,
        "observedGeneration": view.metadata.generation,
    }
    before, after = view.status.disrupted_pods, standing.disrupted_pods
    if after != before:
        # A merge patch that leaves alone what the eviction subresource noted in between.
        fields["disruptedPods"] = {name: after.get(name) for name in before}
    condition = (
        Condition(ALLOWED, "True", SUFFICIENT)
        if allowed
        else Condition(ALLOWED, "False", INSUFFICIENT)
    )
    return PatchStatus(_ref(view), fields, (condition,))


def failure_patch(view: PodDisruptionBudget, message: str) -> PatchStatus:
    """Allow nothing while the budget cannot be worked out, and say why."""
    condition = Condition(ALLOWED, "False", SYNC_FAILED, message)
    return PatchStatus(_ref(view), {"disruptionsAllowed": 0}, (condition,))


ConditionForm = Callable[[PatchStatus, PodDisruptionBudget, Instant], PatchStatus]


def short_conditions(patch: PatchStatus, _view: PodDisruptionBudget, _now: Instant) -> PatchStatus:
    """`patch` with type, status and reason of its conditions, which is all a simulation reads."""
    return patch


def full_conditions(patch: PatchStatus, view: PodDisruptionBudget, now: Instant) -> PatchStatus:
    """`patch` with its conditions as upstream writes them: with generation and transition time."""
    # upstream: apimachinery/pkg/api/meta/conditions.go:SetStatusCondition
    entries = {one["type"]: one for one in view.status.conditions}
    for one in patch.conditions:
        before = entries.get(one.type, {})
        since = before.get("lastTransitionTime") if before.get("status") == one.status else None
        entries[one.type] = {
            "type": one.type,
            "status": one.status,
            "observedGeneration": view.metadata.generation,
            "lastTransitionTime": since or format_timestamp(now),
            "reason": one.reason,
            "message": one.message,
        }
    return PatchStatus(patch.target, {**patch.fields, "conditions": list(entries.values())})


def doubtful(view: PodDisruptionBudget, reason: str) -> RecordEvent:
    """The event that tells what is the matter with the pods of a budget: NO_PODS or UNMANAGED."""
    # upstream: pkg/controller/disruption/disruption.go:trySync
    if reason == NO_PODS:
        return owner_event(_ref(view), NO_PODS, "No matching pods found")
    selector = view.spec.selector
    told = {} if selector is None else as_json(selector)
    note = (
        f"Pods selected by this PodDisruptionBudget (selector: {told}) were "
        "found to be unmanaged. As a result, the status of the PodDisruptionBudget cannot be "
        "calculated correctly, which may result in undefined behavior. To account for these pods "
        'please set ".spec.minAvailable" field of the PodDisruptionBudget to an integer value.'
    )
    return owner_event(_ref(view), UNMANAGED, note, is_warning=True)


def not_counted(view: PodDisruptionBudget, message: str) -> RecordEvent:
    """The event that tells why it is not known how many pods a budget should have."""
    note = f"Failed to calculate the number of expected pods: {message}"
    return owner_event(_ref(view), "CalculateExpectedPodCountFailed", note, is_warning=True)


def _ref(view: PodDisruptionBudget) -> ObjectRef:
    meta = view.metadata
    return ObjectRef(KIND, meta.namespace, meta.name, meta.uid)
