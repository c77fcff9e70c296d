"""Sets of completion indexes in the notation of Jobs: `1,3-5,7`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from fairlead.api.text.integer import parse_int64

# No Job has finished more pods than this; `0-999999999` would expand to a billion indexes.
INDEXES_MAX: Final = 1_000_000


class IndexSet(Struct, frozen=True):
    """A set of indexes as ascending intervals (first, last), both inclusive."""

    intervals: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self.intervals, index, key=lambda interval: interval[0]) - 1
        return position >= 0 and index <= self.intervals[position][1]


def parse_index_set(text: str, completions: int) -> IndexSet:
    """Return the set of those indexes in `text` that are less than `completions`.

    Invalid parts of `text` are ignored. An interval is also ignored if it begins at or before the
    end of the last accepted interval.
    """
    # upstream: pkg/controller/job/indexed_job_utils.go:parseIndexesFromString
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        low, high = _number(first), _number(last or first)
        if low is None or high is None:
            continue
        high = min(high, completions - 1)
        if low <= high and (not found or found[-1][1] < low):
            found.append((low, high))
    return IndexSet(tuple(found))


def _number(text: str) -> int | None:
    return parse_int64(text) if text.isdecimal() else None


def parse_indexes(text: str, completions: int) -> list[int]:
    """Return the indexes in `text` that are below `completions`; at most INDEXES_MAX of them."""
    intervals = parse_index_set(text, completions).intervals
    every = (index for first, last in intervals for index in range(first, last + 1))
    return list(islice(every, INDEXES_MAX))


def format_indexes(indexes: Iterable[int]) -> str:
    """Return `indexes` as numbers and intervals, such as `1,3-5,7`.

    An interval has at least three numbers; 1 and 2 are written as `1,2`.
    """
    # upstream: pkg/controller/job/indexed_job_utils.go:orderedIntervals.String
    intervals: list[list[int]] = []
    for index in sorted(indexes):
        if intervals and intervals[-1][1] == index - 1:
            intervals[-1][1] = index
        else:
            intervals.append([index, index])
    return ",".join(_interval(first, last) for first, last in intervals)


def _interval(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
