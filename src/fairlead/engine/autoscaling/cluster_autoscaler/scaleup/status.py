"""ScaleUpStatus: the result of a scale-up, with the reasons why some pods get no new node.

upstream: processors/status/scale_up_status_processor.go
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.balancing import ScaleUpInfo

MAX_NODES_REACHED: Final = "max total nodes in cluster reached"


class ScaleUpResult(StrEnum):
    """The outcome of one scale-up attempt, named as in upstream."""

    SUCCESSFUL = "ScaleUpSuccessful"
    ERROR = "ScaleUpError"
    NO_OPTIONS_AVAILABLE = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    NOT_TRIED = "ScaleUpNotTried"
    IN_COOLDOWN = "ScaleUpInCooldown"
    LIMITED_BY_MAX_NODES_TOTAL = "ScaleUpLimitedByMaxNodesTotal"


class NoScaleUpInfo(Struct, frozen=True):
    """The reasons why no node group grows for `pod`.

    `rejected` contains the reasons why the pod does not fit nodes of a group. `skipped` contains
    the reasons why scale-up skipped a group. The keys of both are group ids.
    """

    pod: Pod
    rejected: dict[str, tuple[str, ...]]
    skipped: dict[str, tuple[str, ...]]


class ScaleUpStatus(Struct):
    """The result of one scale-up attempt.

    Pods are in the order in which they were considered. `triggered` are the pods for which groups
    grow. `await_evaluation` are the pods for which a later scale-up may grow groups.
    `failed_resize` are the ids of the groups that could not grow.
    """

    result: ScaleUpResult
    infos: Sequence[ScaleUpInfo] = ()
    triggered: Sequence[Pod] = ()
    remain: list[NoScaleUpInfo] = field(default_factory=list)
    await_evaluation: Sequence[Pod] = ()
    failed_resize: Sequence[str] = ()
    error: str = ""
    error_type: str = ""


def send_events(status: ScaleUpStatus, events: EventLog) -> None:
    """Record TriggeredScaleUp and NotTriggerScaleUp events on the pods of `status`.

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
    """Return whether the pods in `status.remain` get a NotTriggerScaleUp event."""
    return status.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR)


def not_triggered(status: ScaleUpStatus, info: NoScaleUpInfo) -> str:
    """Return the text of the event NotTriggerScaleUp.

    The text states each reason, and the number of groups for which the reason applies.
    """
    if status.result is ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL:
        return f"pod didn't trigger scale-up: {MAX_NODES_REACHED}"
    counts: dict[str, int] = {}
    for reasons in (*info.rejected.values(), *info.skipped.values()):
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    parts = [f"{count} {reason}" for reason, count in sorted(counts.items())]
    return f"pod didn't trigger scale-up: {', '.join(parts)}"
