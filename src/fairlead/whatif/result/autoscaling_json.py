"""The parts of a result's JSON about autoscalers and about pods' waiting times for nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.api.json import Json
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.whatif.outcome.autoscaling.waiting_time import (
    PodWait,
    WaitingTimes,
    waiting_times,
    waiting_times_by_workload,
    waits_so_far,
)
from fairlead.whatif.outcome.percentile import percentile

if TYPE_CHECKING:
    from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome, GroupOutcome
    from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome


def autoscaling_json(
    outcome: AutoscalingOutcome | None, start: Instant, without: AutoscalingOutcome | None = None
) -> Json:
    """Return `{"autoscaling": …}`; {} if `outcome` is None, because no autoscaler acted.

    `without` is the outcome of the run without the change; only its totals are included.
    """
    if outcome is None:
        return {}
    found: Json = {
        "autoscaler": outcome.autoscaler,
        "groups": [
            {**_group(one), "cost_is_estimated": one.instance_type in outcome.estimated_prices}
            for one in outcome.groups
        ],
        "nodes": [
            {
                "at_s": round(to_seconds(one.at - start), 3),
                "node": one.node,
                "group": one.group,
                "event": "added" if one.came else "removed",
                "reason": one.reason,
            }
            for one in outcome.transitions
        ],
        "no_scale_up": [{"pod": pod, "why": why} for pod, why in outcome.waiting.items()],
        "no_scale_down": [{"node": node, "why": why} for node, why in outcome.staying.items()],
        "insufficient_capacity": [
            {"group": group, "machines": count} for group, count in outcome.undelivered.items()
        ],
        **_totals(outcome),
        "without": None if without is None else _totals(without),
    }
    return {"autoscaling": found}


def waiting_times_json(waits: Iterable[PodWait], *, has_autoscaler: bool) -> Json:
    """Return the distribution of the waiting times `waits` of pods.

    The distribution is given in total, and also by workload if there is an autoscaler.
    """
    waits = list(waits)
    return {
        **waiting_totals_json(waits),
        "by_workload": waits_by_workload_json(waits) if has_autoscaler else [],
    }


def waits_by_workload_json(waits: Iterable[PodWait]) -> list[Json]:
    """Return the distribution of `waits` for each workload; times are in seconds."""
    return [
        {"workload": str(workload), **_waiting(found)}
        for workload, found in waiting_times_by_workload(waits)
    ]


def waiting_totals_json(waits: Iterable[PodWait]) -> Json:
    """Return the distribution of `waits` over all workloads as JSON; times are in seconds."""
    return _waiting(waiting_times(waits))


def waits_so_far_json(waits: Iterable[PodWait], end: Instant) -> Json:
    """Return percentiles (seconds) of how long each pod of `waits` has waited by `end`.

    Pods with a negative priority are left out (`waits_so_far`).
    """
    found = waits_so_far(waits, end) or [0]
    return {
        "p95_so_far_s": _seconds(percentile(found, 95)),
        "longest_so_far_s": _seconds(found[-1]),
    }


def pod_autoscalers_json(outcomes: Iterable[PodAutoscalerOutcome], start: Instant) -> list[Json]:
    """Return the effects of each HorizontalPodAutoscaler; times are in seconds after `start`."""
    return [
        {
            "autoscaler": one.autoscaler,
            "target": one.target,
            "min": one.minimum,
            "max": one.maximum,
            "replicas_before": one.replicas_before,
            "replicas": one.replicas,
            "lowest": one.lowest,
            "highest": one.highest,
            "short_s": 0.0 if one.shortage is None else _seconds(one.shortage.lasted),
            "proposed": None if one.shortage is None else one.shortage.proposed,
            "inactive_reason": one.inactive_reason or None,
            "inactive_message": one.inactive_message or None,
            "changes": [
                {
                    "at_s": _seconds(change.at - start),
                    "from": change.before,
                    "to": change.after,
                    "reason": change.reason,
                }
                for change in one.changes
            ],
        }
        for one in outcomes
    ]


def _waiting(found: WaitingTimes) -> Json:
    return {
        "bound": found.bound,
        "still_waiting": found.still_waiting,
        "median_s": _seconds(found.median),
        "p95_s": _seconds(found.p95),
        "longest_s": _seconds(found.longest),
        "longest_pod": found.longest_pod or None,
    }


def _seconds(duration: DurationNs) -> float:
    return round(to_seconds(duration), 3)


def _group(one: GroupOutcome) -> Json:
    return {
        "group": one.group,
        "instance_type": one.instance_type,
        "min": one.minimum,
        "max": one.maximum,
        "nodes_before": one.before,
        "nodes_after": one.after,
        "added": one.added,
        "removed": one.removed,
        "node_hours": round(one.node_hours, 3),
        "cost_per_hour": _money(one.cost_per_hour),
        "cost": _money(one.cost),
    }


def _totals(outcome: AutoscalingOutcome) -> Json:
    return {
        "added": outcome.added,
        "removed": outcome.removed,
        "nodes_after": outcome.nodes_after,
        "node_hours": round(outcome.node_hours, 3),
        "cost_per_hour": _money(outcome.cost_per_hour),
        "cost_per_month": _money(outcome.cost_per_month),
        "cost": _money(outcome.cost),
        "cost_is_estimated": outcome.is_cost_estimated,
    }


def _money(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 4)
