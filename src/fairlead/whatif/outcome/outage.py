"""OutageOutcome: the failed nodes of a run and the effects on their pods.

    a node    ready ─▶ failed, unnoticed ─▶ not ready (Unknown, or Ready=False) ─▶ tainted NoExecute
    a pod     down, not replaced ─▶ its replacement waits for a node ─▶ up again

A replacement pod has the key of the pod that it replaces. If the replacement runs, the pod is back.
A node is out of service in all states except READY and CORDONED. A pod is affected as soon as its
node is out of service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heapreplace
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE
from fairlead.engine.nodelifecycle.zones.zone_state import KEY_SEPARATOR

# The reasons of evictions by the taints of a failed node, without any other taint.
_FAILURE_TAINTS: Final = frozenset(f"taint {key}:{NO_EXECUTE}" for key in (NOT_READY, UNREACHABLE))


class NodeState(StrEnum):
    """The stage of a node's failure; UNNOTICED means that the condition Ready is still True."""

    READY = "ready"
    CORDONED = "cordoned"
    UNNOTICED = "unnoticed"
    UNREADY = "unready"
    TAINTED = "tainted"

    @property
    def is_in_service(self) -> bool:
        """Whether a node in this state is in service, so that its pods work."""
        return self in (NodeState.READY, NodeState.CORDONED)


class AffectedPodState(StrEnum):
    """The state of an affected pod.

    DOWN: the pod has no replacement, and is down with its node or was evicted from it. WAITING: its
    replacement waits for a node or starts, or the containers of the pod itself start again because
    its node is back. UP: the pod or its replacement runs again or has succeeded.
    """

    DOWN = "down"
    WAITING = "waiting"
    UP = "up"


class LossCause(StrEnum):
    """The reason why a pod of a failed node does not run again."""

    TOLERATES = "tolerates"
    DAEMON = "daemon"
    NOT_YET = "not-yet"
    UNTAINTED = "untainted"
    FLAPPING = "flapping"
    STOPPED_ZONE = "stopped-zone"
    STICKY = "sticky"
    UNCONFIRMED = "unconfirmed"
    NO_ROOM = "no-room"
    ATTACHED = "attached"
    STARTING = "starting"
    NOT_REPLACED = "not-replaced"
    NODE_REMOVED = "node-removed"
    NOT_NEEDED = "not-needed"

    @property
    def is_loss(self) -> bool:
        """Whether a pod with this cause is lost: it does not run, although it should.

        A pod that was removed with its node, or is no longer needed, is not lost.
        """
        return self not in (LossCause.NODE_REMOVED, LossCause.NOT_NEEDED)

    @property
    def words(self) -> str:
        """The reason as a short phrase for tables."""
        return _CAUSES_IN_WORDS[self]


_CAUSES_IN_WORDS: Final = {
    LossCause.TOLERATES: "tolerates indefinitely",
    LossCause.DAEMON: "DaemonSet or static pod",
    LossCause.NOT_YET: "still tolerating",
    LossCause.UNTAINTED: "node not tainted",
    LossCause.FLAPPING: "node flaps",
    LossCause.STOPPED_ZONE: "evictions stopped",
    LossCause.STICKY: "StatefulSet waits for its node",
    LossCause.UNCONFIRMED: "deletion unconfirmed",
    LossCause.NO_ROOM: "no room",
    LossCause.ATTACHED: "volume attached to another node",
    LossCause.STARTING: "starting",
    LossCause.NOT_REPLACED: "not replaced",
    LossCause.NODE_REMOVED: "removed with its node",
    LossCause.NOT_NEEDED: "no longer needed",
}


class NodeSample(Struct, frozen=True):
    """The number of nodes of `zone` in each state, from `at` until the next sample of `zone`."""

    at: Instant
    zone: str
    counts: Mapping[NodeState, int]


class AffectedPodSample(Struct, frozen=True):
    """Numbers of affected pods, by state, from the instant `at` until the next sample.

    `evicted` counts the evictions of these pods up to `at`.
    """

    at: Instant
    down: int
    waiting: int
    back: int
    evicted: int


class ZoneChange(Struct, frozen=True):
    """The state of a zone from the instant `at` on, as the node lifecycle controller sees it.

    `size` is the number of nodes in the zone, and `unready` is the number of these nodes that are
    not Ready. `rate` is the eviction rate in nodes per second.
    """

    at: Instant
    zone: str
    state: str
    size: int
    unready: int
    rate: float


class RateLimitedTaint(Struct, frozen=True):
    """A taint: at `at`, `node` left the rate-limited queue of `zone` and was tainted."""

    at: Instant
    zone: str
    node: str


class NodeHistory(Struct, frozen=True, kw_only=True):
    """The times at which a node's failure reached each stage; None if it did not reach the stage.

    If the node failed several times, the times are those of the failure that led to the first
    eviction of a pod. If no pod was evicted, the times are those of the first failure that the
    control plane noticed. If the control plane noticed no failure, the times are those of the first
    failure.

    A pod that was on several failed nodes in turn counts for each of them.
    """

    node: str
    zone: str
    # The time at which the node's kubelet stopped reporting. A slow kubelet reports late but never
    # stops; then this is equal to `unready_at`.
    quiet_at: Instant
    unready_at: Instant | None  # from then on, the condition Ready was not True
    tainted_at: Instant | None  # the time at which the node got a NoExecute taint
    first_eviction_at: Instant | None
    last_eviction_at: Instant | None
    back_at: Instant | None  # the last return to service; None if out of service at the end
    pods: int  # the number of pods of the node
    evicted: int  # the number of deleted pods of the node
    returns: int = 0  # how often the node returned
    first_eviction_why: str = ""  # the reason of the first eviction

    @property
    def failures(self) -> int:
        """The number of times that the node failed."""
        return self.returns + (self.back_at is None)

    @property
    def is_evicted_by_failure(self) -> bool:
        """Whether the taint of the failure was the cause of the first eviction.

        False if, for example, the cause was the taint node.kubernetes.io/out-of-service.
        """
        return self.first_eviction_why in _FAILURE_TAINTS

    @property
    def is_unnoticed(self) -> bool:
        """Whether the node always returned before the control plane noticed its failure."""
        return self.returns > 0 and self.unready_at is None


class LostPod(Struct, frozen=True, kw_only=True):
    """A pod that does not run again at the end; `node` is the failed node.

    `cause` is the kind of reason, and `why` is the full reason as text.
    """

    pod: str
    priority: int
    node: str
    cause: LossCause
    why: str


class OutagePreemption(Struct, frozen=True, kw_only=True):
    """A preemption after an outage: `by` is the preemptor of `pod` on `node`.

    The preemptor is a new pod that replaces a pod of a failed node.
    """

    at: Instant
    pod: str
    priority: int
    node: str
    by: str


class DrainProgress(Struct, frozen=True, kw_only=True):
    """The progress of a node's rolling drain; the time of a stage that was not reached is None.

    `held_up_by` are the reasons why pods are still on the node.
    """

    node: str
    begun_at: Instant | None
    empty_at: Instant | None
    back_at: Instant | None
    held_up_by: tuple[str, ...] = ()


def expected_duration(
    drains: Sequence[DrainProgress], time_away: DurationNs = 0
) -> DurationNs | None:
    """Return the time from the beginning of a rolling drain until all `drains` have ended.

    A drain ends when its node is back. A node that is not back is assumed to take as long as the
    average node that is back, but to return no earlier than the latest time in `drains`. If no node
    is back, each node is assumed to return `time_away` after it becomes empty. Return None if no
    node has become empty.

    Example: 6 nodes are drained, 2 at a time, and the first node is back after 10 minutes. The
    drain needs 3 turns, so it takes 30 minutes.
    """
    times = [(one, one.begun_at) for one in drains if one.begun_at is not None]
    lengths = [one.back_at - begun for one, begun in times if one.back_at is not None]
    lengths = lengths or [
        one.empty_at - at + time_away for one, at in times if one.empty_at is not None
    ]
    if not lengths:
        return None
    length = sum(lengths) // len(lengths)
    first = min(begun for _, begun in times)
    at_once = sum(begun == first for _, begun in times)
    latest = max(one.back_at or one.empty_at or begun for one, begun in times)
    # As many instants as nodes are drained at a time. At each of them, a node is back, and the next
    # drain can begin.
    ends = [max(begun + length, latest) for one, begun in times if one.back_at is None]
    ends += [latest] * (at_once - len(ends))
    heapify(ends)
    for _ in range(len(drains) - len(times)):
        heapreplace(ends, ends[0] + length)
    return max(ends) - first


class Misconception(Struct, frozen=True, kw_only=True):
    """A common belief about outages, and the fact that contradicts it in this run."""

    name: str
    belief: str
    fact: str


class OutageOutcome(Struct, frozen=True, kw_only=True):
    """The failed nodes and the effects on pods; sequences are in order of time, then name.

    The times of evictions are None if no pod was evicted.
    """

    concerned: int  # the number of pods whose nodes went out of service
    evicted: int
    first_eviction_at: Instant | None
    last_eviction_at: Instant | None
    first_back_at: Instant | None  # None if no pod came back
    last_back_at: Instant | None  # None if no pod came back
    # The time at which the last pod was back on its own node; None if no pod was.
    last_return_at: Instant | None
    replaced: int  # the number of `concerned` pods whose replacements run at the end
    # The number of `concerned` pods that run again on their own nodes, which returned.
    back_with_node: int
    # The pods in `back_with_node` whose node failed again at least once before they were up.
    late_with_node: int
    last_with_node: int  # those of them that were up only after the last failure of their node
    nodes: tuple[NodeHistory, ...]
    # The `concerned` pods that neither were replaced nor run again on their own nodes.
    lost: tuple[LostPod, ...]
    # The pods that were preempted to make room for replacements.
    preempted: tuple[OutagePreemption, ...]
    taints: tuple[RateLimitedTaint, ...]
    zones: tuple[ZoneChange, ...]
    node_samples: tuple[NodeSample, ...]
    pod_samples: tuple[AffectedPodSample, ...]
    misconceptions: tuple[Misconception, ...] = ()

    @property
    def has_repeated_pods(self) -> bool:
        """Whether a pod counts for several of `nodes`, because it was on one after another."""
        return sum(one.pods for one in self.nodes) > self.concerned

    @property
    def not_back(self) -> list[LostPod]:
        """The pods of `lost` that should run (`LossCause.is_loss`)."""
        return [one for one in self.lost if one.cause.is_loss]


def zone_title(zone: str) -> str:
    """Return the display name of the zone whose key is `zone`."""
    region, _, name = zone.partition(KEY_SEPARATOR)
    return name or region or "no zone"


def zone_phrase(zone: str, word: str = "zone") -> str:
    """Return the name of the zone for use within a sentence; `word` precedes the name."""
    return f"{word} {zone_title(zone)}" if zone else "the nodes without a zone"


def nodes_by_state(samples: Iterable[NodeSample]) -> Iterator[tuple[Instant, dict[NodeState, int]]]:
    """Yield (instant, number of nodes by state over all zones) after each of `samples`."""
    totals = dict.fromkeys(NodeState, 0)
    by_zone: dict[str, Mapping[NodeState, int]] = {}
    for sample in samples:
        before = by_zone.get(sample.zone, {})
        for state, count in sample.counts.items():
            totals[state] += count - before.get(state, 0)
        by_zone[sample.zone] = sample.counts
        yield sample.at, dict(totals)
