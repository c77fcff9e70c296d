"""RateLine: how many nodes a zone's rate would have let taint, beside how many were.

The bucket of a zone holds one token: while nodes wait, the first is tainted at once and each
further one after 1/rate seconds. The line follows the rate as it changes, from the first taint to
the last.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go (burst 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Final

from fairlead.core.instant import Instant, to_seconds
from fairlead.whatif.outage_outcome import OutageOutcome, ZoneChange

_SLACK: Final = 1e-6  # a rate such as 0.1 is no binary fraction


@dataclass(frozen=True, slots=True)
class RateLine:
    """`count` nodes of `zone` were tainted from `first` to `last`; `points` is what was allowed.

    Each point is an instant and the number of nodes that the rate allowed by then.
    """

    zone: str
    count: int
    points: tuple[tuple[Instant, float], ...]

    @property
    def first(self) -> Instant:
        """When the first node was tainted."""
        return self.points[0][0]

    @property
    def last(self) -> Instant:
        """When the last one was."""
        return self.points[-1][0]

    @property
    def allowed(self) -> int:
        """How many nodes might have been tainted by then."""
        return floor(self.points[-1][1] + _SLACK)

    def allowed_at(self, instant: Instant) -> float:
        """How many nodes the rate allowed by `instant`, which is from `first` to `last`."""
        following = next((n for n, (at, _) in enumerate(self.points) if at >= instant), -1)
        at, allowed = self.points[following]
        if at == instant or following == 0:
            return allowed
        before, less = self.points[following - 1]
        return less + (allowed - less) * (instant - before) / (at - before)


def rate_lines(outage: OutageOutcome) -> Iterator[RateLine]:
    """One for each zone in which nodes were tainted in turn, by the zone's key."""
    for zone in sorted({turn.zone for turn in outage.turns}):
        instants = [turn.at for turn in outage.turns if turn.zone == zone]
        changes = [change for change in outage.zones if change.zone == zone]
        points = _points(changes, instants[0], instants[-1])
        yield RateLine(zone, len(instants), tuple(points))


def _points(
    changes: list[ZoneChange], first: Instant, last: Instant
) -> Iterator[tuple[Instant, float]]:
    rate = next((one.rate for one in reversed(changes) if one.at <= first), 0.0)
    at, allowed = first, 1.0
    yield at, allowed
    for change in changes:
        if first < change.at < last:
            allowed += rate * to_seconds(change.at - at)
            at, rate = change.at, change.rate
            yield at, allowed
    if last > first:
        yield last, allowed + rate * to_seconds(last - at)
