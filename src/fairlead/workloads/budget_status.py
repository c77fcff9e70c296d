"""What is written into the status of a PodDisruptionBudget.

upstream: pkg/controller/disruption/disruption.go:updatePdbStatus, failSafe;
component-helpers/apps/poddisruptionbudget/helpers.go:UpdateDisruptionAllowedCondition
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.objects import PodDisruptionBudget
from fairlead.core.command import Condition, ObjectRef, PatchStatus
from fairlead.workloads.budget import Standing

KIND: Final = "PodDisruptionBudget"
ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT: Final = "SufficientPods"
INSUFFICIENT: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"


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


def _ref(view: PodDisruptionBudget) -> ObjectRef:
    meta = view.metadata
    return ObjectRef(KIND, meta.namespace, meta.name, meta.uid)
