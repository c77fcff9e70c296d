"""Samples: a sample states what holds from its instant until the next sample with the same key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.outcome.outage import NodeSample, ZoneChange
from fairlead.whatif.outcome.run_outcome import PodCountSample

_Sample = TypeVar("_Sample", NodeSample, PodCountSample, QueueAllocation, ZoneChange)


def samples_since(
    samples: Iterable[_Sample], since: Instant, key_of: Callable[[_Sample], Hashable]
) -> Iterator[_Sample]:
    """Yield the last sample of each key before `since`, and then all samples from `since` on.

    The earlier samples get the time `since`. `samples` are ordered by time.
    """
    earlier: dict[Hashable, _Sample] = {}
    later: list[_Sample] = []
    for one in samples:
        if one.at < since:
            earlier[key_of(one)] = replace(one, at=since)
        else:
            later.append(one)
    yield from earlier.values()
    yield from later
