"""Builds the status and the events of a HorizontalPodAutoscaler.

upstream: pkg/controller/podautoscaler/horizontal.go:setStatus, setConditionInList
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"
CONTROLLER: Final = "horizontal-pod-autoscaler"


class StatusDraft(Struct):
    """The new status of an autoscaler, which a sync builds step by step.

    `now` is the time of the sync; it becomes the lastTransitionTime of changed conditions.
    """

    status: Json
    now: Instant

    @classmethod
    def of(cls, status: Mapping[str, Any], now: Instant) -> StatusDraft:
        """Return a draft that starts with the current `status`."""
        conditions = [dict(one) for one in status.get("conditions") or ()]
        return cls({**status, "conditions": conditions}, now)

    def set_condition(self, type_: str, reason: str, message: str, *, is_true: bool) -> None:
        """Set the condition `type_` to True if `is_true` is set, otherwise to False."""
        conditions: list[Json] = self.status["conditions"]
        found = next((one for one in conditions if one.get("type") == type_), None)
        if found is None:
            found = {"type": type_}
            conditions.append(found)
        status = "True" if is_true else "False"
        if found.get("status") != status:
            found["lastTransitionTime"] = format_timestamp(self.now)
        found.update(status=status, reason=reason, message=message)

    def set_counts(self, current: int, desired: int | None, metrics: list[Json] | None) -> None:
        """Set the numbers of replicas and the metrics.

        If `desired` is None, the old desired number is kept. If `metrics` is None, the metrics are
        removed.
        """
        if self.status.get("currentReplicas", 0) != current:
            self.status["currentReplicas"] = current
        self.status["desiredReplicas"] = (
            self.status.get("desiredReplicas", 0) if desired is None else desired
        )
        if metrics is not None:
            self.status["currentMetrics"] = metrics
        elif self.status.get("currentMetrics") is not None:
            del self.status["currentMetrics"]

    def set_scaled(self) -> None:
        """Set the last scale time to `now`."""
        self.status["lastScaleTime"] = format_timestamp(self.now)


def compared_fields(status: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the parts of `status` that decide whether a simulation writes the status.

    A simulation writes a new status only if one of these parts has changed (see
    `refreshes_status`).
    """
    conditions = status.get("conditions") or ()
    return (
        status.get("currentReplicas"),
        status.get("desiredReplicas"),
        status.get("lastScaleTime"),
        tuple((one.get("type"), one.get("status"), one.get("reason")) for one in conditions),
    )


def event(autoscaler: ObjectRef, reason: str, note: str, *, is_warning: bool = True) -> RecordEvent:
    """Return an event of the HorizontalPodAutoscaler controller about `autoscaler`."""
    return RecordEvent(
        regarding=autoscaler,
        type="Warning" if is_warning else "Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=CONTROLLER,
    )
