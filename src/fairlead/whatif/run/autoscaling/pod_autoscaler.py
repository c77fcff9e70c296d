"""The effects of HorizontalPodAutoscalers in a run, as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.autoscaler import Autoscaler
from fairlead.engine.workloads.horizontal_pod_autoscaler.controller import HorizontalPodAutoscalers
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    PodAutoscalerOutcome,
    ReplicaChange,
    ReplicaShortage,
)

_CONDITIONS: Final = ("AbleToScale", "ScalingActive")


def pod_autoscaler_outcomes(
    controller: HorizontalPodAutoscalers, since: Instant, until: Instant
) -> tuple[PodAutoscalerOutcome, ...]:
    """Return the outcome of each autoscaler from `since` to `until`, by namespace and name."""
    changes: dict[tuple[str, str], list[ReplicaChange]] = defaultdict(list)
    for one in controller.history:
        if one.at >= since:
            key = one.autoscaler.namespace, one.autoscaler.name
            changes[key].append(ReplicaChange(one.at, one.before, one.after, one.why))
    found = [
        _outcome(
            one,
            controller.replicas_of(one),
            tuple(changes[_key(one)]),
            _shortage(one, since, until),
        )
        for one in controller.autoscalers
    ]
    return tuple(sorted(found, key=lambda one: one.autoscaler))


def _key(one: Autoscaler) -> tuple[str, str]:
    return one.view.metadata.namespace, one.view.metadata.name


def _inactive(one: Autoscaler) -> list[Mapping[str, Any]]:
    conditions = one.view.status.get("conditions") or ()
    return [
        entry
        for entry in conditions
        if entry.get("type") in _CONDITIONS and entry.get("status") == "False"
    ]


def _shortage(one: Autoscaler, since: Instant, until: Instant) -> ReplicaShortage | None:
    found = [each for each in one.shortages(until) if each.end > since]
    if not found:
        return None
    return ReplicaShortage(
        lasted=sum(each.end - max(each.begin, since) for each in found),
        proposed=max(each.proposed for each in found),
        is_over=found[-1].end < until,
    )


def _outcome(
    one: Autoscaler,
    replicas: int | None,
    changes: tuple[ReplicaChange, ...],
    shortage: ReplicaShortage | None,
) -> PodAutoscalerOutcome:
    spec = one.view.spec
    problem = next(iter(_inactive(one)), {})
    return PodAutoscalerOutcome(
        autoscaler=one.view.key,
        target=f"{spec.scale_target_ref.kind} {spec.scale_target_ref.name}",
        minimum=spec.min_replicas,
        maximum=spec.max_replicas,
        replicas=replicas,
        changes=changes,
        inactive_reason=problem.get("reason", ""),
        inactive_message=problem.get("message", ""),
        shortage=shortage,
        with_value=tuple(each.short_name for each in one.metrics if not each.problem),
        without_value=tuple(each.short_name for each in one.metrics if each.problem),
    )
