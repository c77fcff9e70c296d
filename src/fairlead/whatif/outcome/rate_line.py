"""RateLine: the number of nodes of a zone that could be tainted at its eviction rate, over time.

The token bucket of a zone holds one token. The first queued node is tainted immediately, and a
further node after every 1/rate seconds. Tokens do not accumulate while the queue is empty, so the
line is flat until the next node is queued. The line begins at the first taint and ends at the last.

Example: rate 0.1, nodes tainted at 0 s, 10 s and 60 s. The queue was empty between 10 s and 60 s.
So the points are (0 s, 1), (10 s, 2), (60 s, 2) and (60 s, 3).

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go (burst 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outcome.outage import OutageOutcome, ZoneChange

# The queue was empty between two taints if the eviction rate allowed this many taints meanwhile.
IDLE_GAP_MIN: Final = 1.5
_STEP_WIDTH: Final = 1_000_000  # ns; drawn as a vertical step
_SLACK: Final = 1e-6  # sums are not exact, because a rate such as 0.1 is not a binary fraction


class RateLine(Struct, frozen=True):
    """The taints of nodes in `zone`, and how many taints the eviction rate allowed over time.

    `nodes` are the nodes that were tainted, and `count` is the number of taints. Each of `points`
    is (instant, number of taints that the rate allowed until then).
    """

    zone: str
    nodes: frozenset[str]
    count: int
    points: tuple[tuple[Instant, float], ...]

    @property
    def first(self) -> Instant:
        """The instant at which the first node was tainted."""
        return self.points[0][0]

    @property
    def last(self) -> Instant:
        """The instant at which the last node was tainted."""
        return self.points[-1][0]

    @property
    def allowed(self) -> int:
        """The number of taints that the eviction rate allowed until `last`."""
        return floor(self.points[-1][1] + _SLACK)

    def allowed_at(self, instant: Instant) -> float:
        """Return how many taints the rate allowed until `instant`.

        `instant` must be between `first` and `last`.
        """
        following = next((n for n, (at, _) in enumerate(self.points) if at >= instant), -1)
        at, allowed = self.points[following]
        if at == instant or following == 0:
            return allowed
        before, less = self.points[following - 1]
        return less + (allowed - less) * (instant - before) / (at - before)


def rate_lines(outage: OutageOutcome) -> Iterator[RateLine]:
    """Yield one line for each zone with rate-limited taints, sorted by the zone's key."""
    for zone in sorted({taint.zone for taint in outage.taints}):
        taints = [taint for taint in outage.taints if taint.zone == zone]
        instants = [taint.at for taint in taints]
        nodes = frozenset(taint.node for taint in taints)
        changes = [change for change in outage.zones if change.zone == zone]
        yield RateLine(zone, nodes, len(instants), tuple(_points(changes, instants)))


def _points(changes: list[ZoneChange], instants: list[Instant]) -> Iterator[tuple[Instant, float]]:
    allowed, before = 1.0, instants[0]
    yield before, allowed
    for count, instant in enumerate(instants[1:], start=1):
        tokens = _tokens(changes, before, instant)
        if tokens < IDLE_GAP_MIN:
            allowed += tokens
        else:
            yield max(before, instant - _STEP_WIDTH), allowed
            allowed = count + 1.0
        yield instant, allowed
        before = instant


def _tokens(changes: list[ZoneChange], start: Instant, end: Instant) -> float:
    """Return the number of tokens produced from `start` to `end`.

    Tokens that a full bucket discards are counted, too.
    """
    total, rate, since = 0.0, 0.0, start
    for change in changes:
        if change.at >= end:
            break
        if change.at > since:
            total += rate * to_seconds(change.at - since)
            since = change.at
        rate = change.rate
    return total + rate * to_seconds(end - since)
