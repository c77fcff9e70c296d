"""What the HTML report shows of nodes that went quiet, or are drained in turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outage_outcome import (
    NodeSample,
    NodeState,
    OutageOutcome,
    PodSample,
    nodes_by_state,
    zone_title,
)
from fairlead.whatif.outcome import Outcome
from fairlead.whatif.rate_line import RateLine, rate_lines
from fairlead.whatif.report.outage_data import (
    Outage,
    OutageFigures,
    OutageTimeline,
    TurnTaken,
    ZoneRate,
)


def outage_report(found: OutageOutcome | None, start: Instant) -> Outage | None:
    """`found` as the report wants it."""
    if found is None:
        return None
    return {
        "figures": _figures(found, start),
        "nodes_over_time": _nodes_over_time(found.node_samples, start),
        "pods_over_time": _pods_over_time(found.pod_samples, start),
        "rates": [_rate(line, found, start) for line in rate_lines(found)],
        "nodes": [
            {
                "node": one.node,
                "zone": zone_title(one.zone),
                "quiet_s": _t_s(one.quiet_at, start),
                "unready_s": _when(one.unready_at, start),
                "tainted_s": _when(one.tainted_at, start),
                "first_eviction_s": _when(one.first_eviction_at, start),
                "back_s": _when(one.back_at, start),
                "pods": one.pods,
                "evicted": one.evicted,
            }
            for one in found.nodes
        ],
        "lost": [
            {
                "pod": one.pod,
                "priority": one.priority,
                "node": one.node,
                "cause": one.cause.words,
                "why": one.why,
            }
            for one in found.lost
        ],
        "preempted": [
            {
                "t_s": _t_s(one.at, start),
                "victim": one.pod,
                "victim_priority": one.priority,
                "node": one.node,
                "by": one.by,
            }
            for one in found.preempted
        ],
        "zones": [
            {
                "t_s": _t_s(one.at, start),
                "zone": zone_title(one.zone),
                "state": one.state or "gone",
                "unready": one.unready,
                "size": one.size,
                "rate": f"{one.rate:g} nodes/s",
            }
            for one in found.zones
        ],
        "beliefs": [{"belief": one.belief, "fact": one.fact} for one in found.beliefs],
    }


def drains_report(outcome: Outcome) -> list[TurnTaken]:
    """The nodes that are drained in turn, in their order."""
    start = outcome.started_at
    return [
        {
            "node": one.node,
            "begun_s": _when(one.begun_at, start),
            "empty_s": _when(one.empty_at, start),
            "back_s": _when(one.back_at, start),
            "held_up_by": "; ".join(one.held_up_by),
        }
        for one in outcome.drains
    ]


def _figures(found: OutageOutcome, start: Instant) -> OutageFigures:
    return {
        "nodes": len(found.nodes),
        "concerned": found.concerned,
        "evicted": found.evicted,
        "replaced": found.replaced,
        "back_with_node": found.back_with_node,
        "lost": len(found.lost),
        "preempted": len(found.preempted),
        "first_eviction_s": _when(found.first_eviction_at, start),
        "last_eviction_s": _when(found.last_eviction_at, start),
        "first_back_s": _when(found.first_back_at, start),
        "last_back_s": _when(found.last_back_at, start),
    }


def _nodes_over_time(samples: Iterable[NodeSample], start: Instant) -> OutageTimeline:
    """All zones added up, at each instant at which something changed."""
    totals = {_t_s(at, start): counts for at, counts in nodes_by_state(samples)}
    return {
        "t_s": list(totals),
        "counts": {
            state.value: [counts[state] for counts in totals.values()] for state in NodeState
        },
    }


def _pods_over_time(samples: Iterable[PodSample], start: Instant) -> OutageTimeline:
    last = {_t_s(one.at, start): one for one in samples}
    return {
        "t_s": list(last),
        "counts": {
            "down": [one.down for one in last.values()],
            "waiting": [one.waiting for one in last.values()],
            "back": [one.back for one in last.values()],
            "evicted": [one.evicted for one in last.values()],
        },
    }


def _rate(line: RateLine, found: OutageOutcome, start: Instant) -> ZoneRate:
    """Both lines at the instants of either."""
    turns = [turn.at for turn in found.turns if turn.zone == line.zone]
    instants = sorted({*turns, *(at for at, _ in line.points)})
    return {
        "zone": zone_title(line.zone),
        "t_s": [_t_s(at, start) for at in instants],
        "tainted": [bisect_right(turns, at) for at in instants],
        "allowed": [round(line.allowed_at(at), 3) for at in instants],
    }


def _when(at: Instant | None, start: Instant) -> float | None:
    return None if at is None else _t_s(at, start)


def _t_s(at: Instant, start: Instant) -> float:
    return round(to_seconds(at - start), 3)
