"""OutageOutcome: what came of nodes that went quiet, as values; a part of a run's outcome.

    a node    ready ─▶ dark, unnoticed ─▶ not ready (Unknown, or Ready=False) ─▶ tainted NoExecute
    a pod     up ─▶ down with its node ─▶ waiting, as its successor, for a node to run on ─▶ back

Pods go by their original's name, so a successor that runs means that the pod is back. A node is
out of service in each of its states but the first two; a pod is concerned from when its node is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.zones.zone_state import KEY_SEPARATOR


class NodeState(StrEnum):
    """How far a node's trouble has come; UNNOTICED: it is dark, and its Ready still says True."""

    READY = "ready"
    CORDONED = "cordoned"
    UNNOTICED = "unnoticed"
    UNREADY = "unready"
    TAINTED = "tainted"

    @property
    def is_in_service(self) -> bool:
        """Whether pods on it do what they should."""
        return self in (NodeState.READY, NodeState.CORDONED)


class PodState(StrEnum):
    """Of a pod that was concerned: DOWN with its node, WAITING as a successor, UP again."""

    DOWN = "down"
    WAITING = "waiting"
    UP = "up"


class Cause(StrEnum):
    """Why a pod does not come back."""

    TOLERATES = "tolerates"
    DAEMON = "daemon"
    NOT_YET = "not-yet"
    UNTAINTED = "untainted"
    STOPPED_ZONE = "stopped-zone"
    STICKY = "sticky"
    UNCONFIRMED = "unconfirmed"
    NO_ROOM = "no-room"
    STARTING = "starting"
    NOT_REPLACED = "not-replaced"

    @property
    def words(self) -> str:
        """For people."""
        return _CAUSES_IN_WORDS[self]


_CAUSES_IN_WORDS: Final = {
    Cause.TOLERATES: "tolerates for ever",
    Cause.DAEMON: "belongs to its node",
    Cause.NOT_YET: "toleration not over",
    Cause.UNTAINTED: "node not tainted",
    Cause.STOPPED_ZONE: "evictions stopped",
    Cause.STICKY: "StatefulSet waits",
    Cause.UNCONFIRMED: "deletion unconfirmed",
    Cause.NO_ROOM: "no room",
    Cause.STARTING: "starting",
    Cause.NOT_REPLACED: "not replaced",
}


@dataclass(frozen=True, slots=True)
class NodeSample:
    """How many nodes of `zone` are in which state from `at` on."""

    at: Instant
    zone: str
    counts: Mapping[NodeState, int]


@dataclass(frozen=True, slots=True)
class PodSample:
    """How many of the pods concerned are how from `at` on; `evicted` of them were deleted."""

    at: Instant
    down: int
    waiting: int
    back: int
    evicted: int


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """A zone's state or size, and how many of its nodes may be tainted a second, from `at` on."""

    at: Instant
    zone: str
    state: str
    size: int
    unready: int
    rate: float


@dataclass(frozen=True, slots=True)
class Turn:
    """`node` got its NoExecute taint at `at`, because its turn in `zone` had come."""

    at: Instant
    zone: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStory:
    """What happened to a node that was out of service; None for what did not happen.

    The first time of each, but for `back_at`: the last time it was in service again, None where
    it is not at the end. `pods` were on it, of which `evicted` were deleted.
    """

    node: str
    zone: str
    quiet_at: Instant
    unready_at: Instant | None
    tainted_at: Instant | None
    first_eviction_at: Instant | None
    last_eviction_at: Instant | None
    back_at: Instant | None
    pods: int
    evicted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A pod that is not back at the end, and why; `node` is the one it was on."""

    pod: str
    priority: int
    node: str
    cause: Cause
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomMade:
    """`pod` was preempted on `node` by the successor of a pod that was on a quiet node."""

    at: Instant
    pod: str
    priority: int
    node: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTurn:
    """How far a node that is drained in turn came; None for what has not happened.

    `held_up_by` are the refusals that keep it from being empty.
    """

    node: str
    begun_at: Instant | None
    empty_at: Instant | None
    back_at: Instant | None
    held_up_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Something commonly believed, and what the code did instead in this run."""

    name: str
    belief: str
    fact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageOutcome:
    """All of it, in order of time, then name; `preempted` are others that made room for these.

    `concerned` pods were on nodes out of service: of them, `replaced` ones run as new pods at the
    end, others are back with their nodes, or `lost`. The first and last instants are None where
    there was none.
    """

    concerned: int
    evicted: int
    first_eviction_at: Instant | None
    last_eviction_at: Instant | None
    first_back_at: Instant | None
    last_back_at: Instant | None
    replaced: int
    back_with_node: int
    nodes: tuple[NodeStory, ...]
    lost: tuple[Lost, ...]
    preempted: tuple[RoomMade, ...]
    turns: tuple[Turn, ...]
    zones: tuple[ZoneChange, ...]
    node_samples: tuple[NodeSample, ...]
    pod_samples: tuple[PodSample, ...]
    beliefs: tuple[Belief, ...] = ()


def zone_title(zone: str) -> str:
    """A zone's key as people say it."""
    region, _, name = zone.partition(KEY_SEPARATOR)
    return name or region or "no zone"


def zone_phrase(zone: str, word: str = "zone") -> str:
    """The same within a sentence; `word` begins it."""
    return f"{word} {zone_title(zone)}" if zone else "the part without a zone"


def nodes_by_state(samples: Iterable[NodeSample]) -> Iterator[tuple[Instant, dict[NodeState, int]]]:
    """The nodes of all zones, counted by state, after each of `samples`."""
    totals = dict.fromkeys(NodeState, 0)
    by_zone: dict[str, Mapping[NodeState, int]] = {}
    for sample in samples:
        before = by_zone.get(sample.zone, {})
        for state, count in sample.counts.items():
            totals[state] += count - before.get(state, 0)
        by_zone[sample.zone] = sample.counts
        yield sample.at, dict(totals)
