"""RateLine: how many nodes a zone's rate would have let taint, beside how many were.

The bucket of a zone holds one token: while nodes wait, the first is tainted at once and each
further one after 1/rate seconds. Where nobody waits, tokens are not saved up, so the line stands
still until the next node comes. It goes from the first taint to the last.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go (burst 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Final

from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outage_outcome import OutageOutcome, ZoneChange

IDLE_FROM: Final = 1.5  # tokens; with so many between two nodes, none was waiting
_MOMENT: Final = 1_000_000  # ns; what readers see as a step
_SLACK: Final = 1e-6  # a rate such as 0.1 is no binary fraction


@dataclass(frozen=True, slots=True)
class RateLine:
    """`count` times were `nodes` of `zone` tainted, from `first` to `last`.

    `points` is what was allowed: each is an instant and the number of nodes that the rate allowed
    by then.
    """

    zone: str
    nodes: frozenset[str]
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
        turns = [turn for turn in outage.turns if turn.zone == zone]
        instants = [turn.at for turn in turns]
        nodes = frozenset(turn.node for turn in turns)
        changes = [change for change in outage.zones if change.zone == zone]
        yield RateLine(zone, nodes, len(instants), tuple(_points(changes, instants)))


def _points(changes: list[ZoneChange], turns: list[Instant]) -> Iterator[tuple[Instant, float]]:
    allowed, before = 1.0, turns[0]
    yield before, allowed
    for count, turn in enumerate(turns[1:], start=1):
        tokens = _tokens(changes, before, turn)
        if tokens < IDLE_FROM:
            allowed += tokens
        else:
            yield max(before, turn - _MOMENT), allowed
            allowed = count + 1.0
        yield turn, allowed
        before = turn


def _tokens(changes: list[ZoneChange], start: Instant, end: Instant) -> float:
    """How many tokens the zone's rate makes from `start` to `end`, were there room for them."""
    total, rate, since = 0.0, 0.0, start
    for change in changes:
        if change.at >= end:
            break
        if change.at > since:
            total += rate * to_seconds(change.at - since)
            since = change.at
        rate = change.rate
    return total + rate * to_seconds(end - since)
