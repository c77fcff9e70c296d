"""Index sets as Jobs write them: `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str, completions: int) -> list[int]:
    """The indexes below `completions` that `text` names, in order.

    What makes no sense in it is left out.
    """
    # upstream: pkg/controller/job/indexed_job_utils.go:parseIndexesFromString
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.extend(range(int(first), min(int(last or first) + 1, completions)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """`indexes` as a list of numbers and intervals; two neighbours are no interval."""
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
