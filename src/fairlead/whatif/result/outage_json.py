"""Failed nodes and rolling drains in the JSON of a result (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.api.json import Json
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outcome.outage import NodeHistory, NodeSample, OutageOutcome, zone_title
from fairlead.whatif.outcome.run_outcome import RunOutcome

if TYPE_CHECKING:
    from fairlead.whatif.outcome.rate_line import RateLine


def outage_json(outcome: OutageOutcome | None, start: Instant) -> Json | None:
    """Return `outcome` as JSON, with instants as seconds after `start`; None if no node failed."""
    if outcome is None:
        return None
    # Imported only if it is needed: most runs have no failed nodes.
    from fairlead.whatif.outcome.rate_line import rate_lines  # noqa: PLC0415

    return {
        "concerned": outcome.concerned,
        "evicted": outcome.evicted,
        "replaced": outcome.replaced,
        "back_with_node": outcome.back_with_node,
        "first_eviction_s": _after(start, outcome.first_eviction_at),
        "last_eviction_s": _after(start, outcome.last_eviction_at),
        "first_back_s": _after(start, outcome.first_back_at),
        "last_back_s": _after(start, outcome.last_back_at),
        "lost": [
            {
                "pod": one.pod,
                "node": one.node,
                "priority": one.priority,
                "cause": one.cause.value,
                "why": one.why,
            }
            for one in outcome.lost
        ],
        "preempted": [
            {"pod": one.pod, "node": one.node, "by": one.by, "at_s": _after(start, one.at)}
            for one in outcome.preempted
        ],
        "nodes": [_history(one, start) for one in outcome.nodes],
        "zones": [
            {
                "at_s": _after(start, one.at),
                "zone": zone_title(one.zone),
                "state": one.state,
                "size": one.size,
                "unready": one.unready,
                "nodes_per_second": one.rate,
            }
            for one in outcome.zones
        ],
        "turns": [
            {"at_s": _after(start, one.at), "zone": zone_title(one.zone), "node": one.node}
            for one in outcome.taints
        ],
        "rate_lines": [_rate_line(one, start) for one in rate_lines(outcome)],
        "nodes_over_time": _node_samples(outcome.node_samples, start),
        "pods_over_time": [
            {
                "at_s": _after(start, one.at),
                "down": one.down,
                "waiting": one.waiting,
                "back": one.back,
                "evicted": one.evicted,
            }
            for one in outcome.pod_samples
        ],
        "misconceptions": [
            {"name": one.name, "belief": one.belief, "fact": one.fact}
            for one in outcome.misconceptions
        ],
    }


def drains_json(outcome: RunOutcome) -> list[Json]:
    """Return the rolling drains in the order in which they were requested."""
    start = outcome.started_at
    return [
        {
            "node": one.node,
            "begun_s": _after(start, one.begun_at),
            "empty_s": _after(start, one.empty_at),
            "back_s": _after(start, one.back_at),
            "held_up_by": list(one.held_up_by),
        }
        for one in outcome.drains
    ]


def _history(one: NodeHistory, start: Instant) -> Json:
    return {
        "node": one.node,
        "zone": zone_title(one.zone),
        "failures": one.failures,
        "quiet_s": _after(start, one.quiet_at),
        "unready_s": _after(start, one.unready_at),
        "tainted_s": _after(start, one.tainted_at),
        "first_eviction_s": _after(start, one.first_eviction_at),
        "last_eviction_s": _after(start, one.last_eviction_at),
        "back_s": _after(start, one.back_at),
        "pods": one.pods,
        "evicted": one.evicted,
    }


def _rate_line(one: RateLine, start: Instant) -> Json:
    points = [{"at_s": _after(start, at), "nodes": round(allowed, 3)} for at, allowed in one.points]
    return {"zone": zone_title(one.zone), "tainted": one.count, "allowed": points}


def _node_samples(samples: Iterable[NodeSample], start: Instant) -> list[Json]:
    return [
        {
            "at_s": _after(start, one.at),
            "zone": zone_title(one.zone),
            **{state.value: count for state, count in one.counts.items()},
        }
        for one in samples
    ]


def _after(start: Instant, at: Instant | None) -> float | None:
    return None if at is None else round(to_seconds(at - start), 3)
