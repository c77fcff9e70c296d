"""Strip: a count over time as one line of blocks, so that several stand under one another.

nodes not ready  ▁▅██████████████████▃        6
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.whatif.duration import for_readers

WIDTH: Final = 72
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NONE: Final = "·"
_MARKS: Final = 5  # on the axis
_MARK_ROOM: Final = 14  # characters


@dataclass(frozen=True, slots=True)
class Steps:
    """A count that changes at `instants` (ascending) to `values`; it is 0 before the first."""

    instants: Sequence[Instant]
    values: Sequence[int]

    def most(self, after: Instant, until: Instant) -> int:
        """The highest count from `after` until just before `until`."""
        first, end = bisect_right(self.instants, after), bisect_right(self.instants, until - 1)
        start = self.values[first - 1] if first else 0
        return max([start, *self.values[first:end]])


def strip(steps: Steps, start: Instant, end: Instant, width: int = WIDTH) -> str:
    """`steps` from `start` to `end`: each block is the highest count of its slice of time."""
    bounds = _bounds(start, end, width)
    counts = [steps.most(*pair) for pair in pairwise(bounds)]
    highest = max(counts, default=0)
    return "".join(_block(count, highest) for count in counts)


def axis(start: Instant, end: Instant, width: int = WIDTH) -> str:
    """The times under a strip, counted from `start`."""
    line = ""
    marks = min(_MARKS, max(width // _MARK_ROOM, 1))
    for mark in range(marks):
        at = width * mark // marks
        line = f"{line:<{at}}{for_readers((end - start) * mark // marks)}"
    last = for_readers(end - start)
    return f"{line:<{max(width - len(last), len(line) + 1)}}{last}"


def _bounds(start: Instant, end: Instant, width: int) -> list[Instant]:
    return [start + (end - start) * number // width for number in range(width + 1)]


def _block(count: int, highest: int) -> str:
    """Blocks fill in eighths of the highest count; any count above 0 shows."""
    if count == 0:
        return _NONE
    return _BLOCKS[max(-(-count * len(_BLOCKS) // highest), 1) - 1]
