"""Sparklines: a count over time as one line of blocks; several counts can share a time axis.

nodes not ready  ▁▅██████████████████▃        6
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.duration import for_readers

WIDTH: Final = 72
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NONE: Final = "·"
_LABELS: Final = 5  # Number of labels on the time axis.
_LABEL_WIDTH: Final = 14  # Characters.


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A count over time: at `instants[i]` (ascending), it changes to `values[i]`.

    Before the first instant, the count is 0.
    """

    instants: Sequence[Instant]
    values: Sequence[int]

    def highest(self, after: Instant, until: Instant) -> int:
        """Return the highest count from `after` (included) to `until` (excluded)."""
        first, end = bisect_right(self.instants, after), bisect_right(self.instants, until - 1)
        start = self.values[first - 1] if first else 0
        return max([start, *self.values[first:end]])


def sparkline(steps: StepFunction, start: Instant, end: Instant, width: int = WIDTH) -> str:
    """Return a sparkline of `steps` from `start` to `end`, with `width` blocks.

    Each block shows the highest count in its time slice.
    """
    bounds = [start + (end - start) * number // width for number in range(width + 1)]
    counts = [steps.highest(*pair) for pair in pairwise(bounds)]
    highest = max(counts, default=0)
    return "".join(_block(count, highest) for count in counts)


def axis(start: Instant, end: Instant, width: int = WIDTH) -> str:
    """Return the line with the time axis, to be printed below sparklines.

    The labels are times since `start`.
    """
    line = ""
    labels = min(_LABELS, max(width // _LABEL_WIDTH, 1))
    for label in range(labels):
        at = width * label // labels
        line = f"{line:<{at}}{for_readers((end - start) * label // labels)}"
    last = for_readers(end - start)
    return f"{line:<{max(width - len(last), len(line) + 1)}}{last}"


def _block(count: int, highest: int) -> str:
    """Return the block character for `count`; a count of `highest` gets the full height.

    The height is `count` / `highest`, rounded up to the next block. So a count above 0 is always
    visible.
    """
    if count == 0:
        return _NONE
    return _BLOCKS[max(-(-count * len(_BLOCKS) // highest), 1) - 1]
