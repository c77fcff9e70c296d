"""ScaleUpStatus: what scale-up did, and why it did not help the remaining pods.

upstream: processors/status/scale_up_status_processor.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.balancing import ScaleUpInfo

MAX_NODES_REACHED: Final = "max total nodes in cluster reached"


class ScaleUpResult(StrEnum):
    """The outcome of one attempt, by upstream's names."""

    SUCCESSFUL = "ScaleUpSuccessful"
    ERROR = "ScaleUpError"
    NO_OPTIONS_AVAILABLE = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    NOT_TRIED = "ScaleUpNotTried"
    IN_COOLDOWN = "ScaleUpInCooldown"
    LIMITED_BY_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"


@dataclass(frozen=True, slots=True)
class NoScaleUpInfo:
    """Why no group helps `pod`: the reason of each group that rejected it or was skipped."""

    pod: Pod
    rejected: dict[str, tuple[str, ...]]
    skipped: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class ScaleUpStatus:
    """The result of one attempt; pods are in the order of the decision."""

    result: ScaleUpResult
    infos: Sequence[ScaleUpInfo] = ()
    triggered: Sequence[Pod] = ()
    remain: list[NoScaleUpInfo] = field(default_factory=list)
    await_evaluation: Sequence[Pod] = ()
    considered: int = 0
    failed_resize: Sequence[str] = ()
    error: str = ""
    error_type: str = ""


def send_events(status: ScaleUpStatus, events: EventLog) -> None:
    """Send TriggeredScaleUp and NotTriggerScaleUp to the pods concerned.

    upstream: processors/status/eventing_scale_up_processor.go
    """
    if sends_not_triggered(status):
        for info in status.remain:
            events.on_pod(info.pod, NORMAL, "NotTriggerScaleUp", not_triggered(status, info))
    if status.infos:
        shown = " ".join(str(info) for info in status.infos)
        for pod in status.triggered:
            message = f"pod triggered scale-up: [{shown}]"
            events.on_pod(pod, NORMAL, "TriggeredScaleUp", message)


def sends_not_triggered(status: ScaleUpStatus) -> bool:
    """Return True if the remaining pods get an event."""
    return status.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR)


def not_triggered(status: ScaleUpStatus, info: NoScaleUpInfo) -> str:
    """Return the text of NotTriggerScaleUp: each reason with its number of groups."""
    if status.result is ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL:
        return f"pod didn't trigger scale-up: {MAX_NODES_REACHED}"
    counts: dict[str, int] = {}
    for reasons in (*info.rejected.values(), *info.skipped.values()):
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    parts = [f"{count} {reason}" for reason, count in sorted(counts.items())]
    return f"pod didn't trigger scale-up: {', '.join(parts)}"
