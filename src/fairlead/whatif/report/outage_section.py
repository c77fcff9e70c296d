"""The report's section on failed nodes and rolling drains, built from an outcome.

Instants are seconds of virtual time, None for events that did not happen. Each time line has its
own ascending instants. A count is valid from its instant to the next instant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Required, TypedDict

from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outcome.outage import (
    AffectedPodSample,
    NodeSample,
    NodeState,
    OutageOutcome,
    nodes_by_state,
    zone_title,
)
from fairlead.whatif.outcome.rate_line import RateLine, rate_lines
from fairlead.whatif.outcome.run_outcome import RunOutcome


class OutageFigures(TypedDict, total=False):
    """The key figures: numbers of pods, except `nodes`, `failures` and the times.

    `failures` counts the failures of all nodes. The names of the times end in `_s`.
    """

    nodes: int
    failures: int
    concerned: int
    evicted: int
    replaced: int
    back_with_node: int
    lost: int
    preempted: int
    first_eviction_s: float | None
    last_eviction_s: float | None
    first_back_s: float | None
    last_back_s: float | None


class OutageTimeline(TypedDict):
    """Counts over virtual time; `counts` is keyed by the name of the count."""

    t_s: Sequence[float]
    counts: Mapping[str, Sequence[int]]


class ZoneRate(TypedDict):
    """The total numbers of NoExecute taints in `zone` from the start to each instant in `t_s`.

    `tainted` is the number of taints that nodes got. `allowed` is the number of taints that the
    eviction rate permitted (`RateLine`).
    """

    zone: str
    t_s: Sequence[float]
    tainted: Sequence[int]
    allowed: Sequence[float]


class FailedNodeRow(TypedDict, total=False):
    """The times at which a node's failure reached each stage; NodeHistory describes the stages."""

    node: Required[str]
    zone: str
    failures: int
    quiet_s: float
    unready_s: float | None
    tainted_s: float | None
    first_eviction_s: float | None
    back_s: float | None
    pods: int
    evicted: int


class LostPodRow(TypedDict, total=False):
    """A pod that does not run again; `cause` is a short phrase, and `why` is the full reason."""

    pod: Required[str]
    priority: int
    node: str
    cause: str
    why: str


class OutagePreemptionRow(TypedDict, total=False):
    """A pod that was preempted by the replacement of a pod of a failed node."""

    t_s: float
    victim: Required[str]
    victim_priority: int
    node: str
    by: str


class ZoneRow(TypedDict, total=False):
    """The state that the node lifecycle controller determined for a zone from `t_s` on."""

    t_s: float
    zone: Required[str]
    state: str
    unready: int
    size: int
    rate: str


class MisconceptionRow(TypedDict):
    """A common belief about outages, and the fact that contradicts it."""

    belief: str
    fact: str


class DrainRow(TypedDict, total=False):
    """The progress of a node's rolling drain."""

    node: Required[str]
    begun_s: float | None
    empty_s: float | None
    back_s: float | None
    held_up_by: str


class OutageSection(TypedDict, total=False):
    """The report's section on failed nodes."""

    figures: Required[OutageFigures]
    nodes_over_time: OutageTimeline
    pods_over_time: OutageTimeline
    rates: Sequence[ZoneRate]
    nodes: Sequence[FailedNodeRow]
    lost: Sequence[LostPodRow]
    preempted: Sequence[OutagePreemptionRow]
    zones: Sequence[ZoneRow]
    misconceptions: Sequence[MisconceptionRow]


def outage_section(outcome: OutageOutcome | None, start: Instant) -> OutageSection | None:
    """Return the section for `outcome`; None if no node failed."""
    if outcome is None:
        return None
    return {
        "figures": _figures(outcome, start),
        "nodes_over_time": _nodes_over_time(outcome.node_samples, start),
        "pods_over_time": _pods_over_time(outcome.pod_samples, start),
        "rates": [_rate(line, outcome, start) for line in rate_lines(outcome)],
        "nodes": [
            {
                "node": one.node,
                "zone": zone_title(one.zone),
                "failures": one.failures,
                "quiet_s": _t_s(one.quiet_at, start),
                "unready_s": _when(one.unready_at, start),
                "tainted_s": _when(one.tainted_at, start),
                "first_eviction_s": _when(one.first_eviction_at, start),
                "back_s": _when(one.back_at, start),
                "pods": one.pods,
                "evicted": one.evicted,
            }
            for one in outcome.nodes
        ],
        "lost": [
            {
                "pod": one.pod,
                "priority": one.priority,
                "node": one.node,
                "cause": one.cause.words,
                "why": one.why,
            }
            for one in outcome.lost
        ],
        "preempted": [
            {
                "t_s": _t_s(one.at, start),
                "victim": one.pod,
                "victim_priority": one.priority,
                "node": one.node,
                "by": one.by,
            }
            for one in outcome.preempted
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
            for one in outcome.zones
        ],
        "misconceptions": [
            {"belief": one.belief, "fact": one.fact} for one in outcome.misconceptions
        ],
    }


def drain_rows(outcome: RunOutcome) -> list[DrainRow]:
    """Return the rolling drains in the order in which they were requested."""
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
        "failures": sum(one.failures for one in found.nodes),
        "concerned": found.concerned,
        "evicted": found.evicted,
        "replaced": found.replaced,
        "back_with_node": found.back_with_node,
        "lost": len(found.not_back),
        "preempted": len(found.preempted),
        "first_eviction_s": _when(found.first_eviction_at, start),
        "last_eviction_s": _when(found.last_eviction_at, start),
        "first_back_s": _when(found.first_back_at, start),
        "last_back_s": _when(found.last_back_at, start),
    }


def _nodes_over_time(samples: Iterable[NodeSample], start: Instant) -> OutageTimeline:
    """Return the number of nodes in each state over all zones, at each change."""
    totals = {_t_s(at, start): counts for at, counts in nodes_by_state(samples)}
    return {
        "t_s": list(totals),
        "counts": {
            state.value: [counts[state] for counts in totals.values()] for state in NodeState
        },
    }


def _pods_over_time(samples: Iterable[AffectedPodSample], start: Instant) -> OutageTimeline:
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
    """Return the numbers of tainted nodes in a zone over time, and the numbers that were allowed.

    The taint rate of the zone determines how many tainted nodes are allowed at each instant.
    """
    taints = [taint.at for taint in found.taints if taint.zone == line.zone]
    instants = sorted({*taints, *(at for at, _ in line.points)})
    return {
        "zone": zone_title(line.zone),
        "t_s": [_t_s(at, start) for at in instants],
        "tainted": [bisect_right(taints, at) for at in instants],
        "allowed": [round(line.allowed_at(at), 3) for at in instants],
    }


def _when(at: Instant | None, start: Instant) -> float | None:
    return None if at is None else _t_s(at, start)


def _t_s(at: Instant, start: Instant) -> float:
    return round(to_seconds(at - start), 3)
