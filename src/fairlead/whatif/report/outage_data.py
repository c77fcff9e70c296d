"""What a report says about nodes that went quiet; a part of `ReportData`.

Instants are seconds of virtual time, None for what did not happen. Each time line has its own
instants, which ascend; a value holds until the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict


class OutageFigures(TypedDict, total=False):
    """The key figures, in pods unless the name says otherwise."""

    nodes: int
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
    """Counts over virtual time, by name."""

    t_s: Sequence[float]
    counts: Mapping[str, Sequence[int]]


class ZoneRate(TypedDict):
    """Nodes of a zone that were tainted by then, and how many its rate allowed."""

    zone: str
    t_s: Sequence[float]
    tainted: Sequence[int]
    allowed: Sequence[float]


class QuietNode(TypedDict, total=False):
    """What happened to a node, and to its pods."""

    node: Required[str]
    zone: str
    quiet_s: float
    unready_s: float | None
    tainted_s: float | None
    first_eviction_s: float | None
    back_s: float | None
    pods: int
    evicted: int


class LostPod(TypedDict, total=False):
    """A pod that is not back, and why: in a few words, and in full."""

    pod: Required[str]
    priority: int
    node: str
    cause: str
    why: str


class RoomMade(TypedDict, total=False):
    """A pod that was preempted for one that had to leave a quiet node."""

    t_s: float
    victim: Required[str]
    victim_priority: int
    node: str
    by: str


class ZoneAssessment(TypedDict, total=False):
    """What the node controller made of a zone from an instant on."""

    t_s: float
    zone: Required[str]
    state: str
    unready: int
    size: int
    rate: str


class Belief(TypedDict):
    """Something commonly believed, and what happened instead."""

    belief: str
    fact: str


class TurnTaken(TypedDict, total=False):
    """How far a node that is drained in turn came."""

    node: Required[str]
    begun_s: float | None
    empty_s: float | None
    back_s: float | None
    held_up_by: str


class Outage(TypedDict, total=False):
    """All of it."""

    figures: Required[OutageFigures]
    nodes_over_time: OutageTimeline
    pods_over_time: OutageTimeline
    rates: Sequence[ZoneRate]
    nodes: Sequence[QuietNode]
    lost: Sequence[LostPod]
    preempted: Sequence[RoomMade]
    zones: Sequence[ZoneAssessment]
    beliefs: Sequence[Belief]
