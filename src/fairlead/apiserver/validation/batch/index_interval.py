"""Parses intervals of completion indexes such as `1,3-5,7`.

upstream: pkg/apis/batch/validation/validation.go:parseIndexInterval, validateIndexesFormat,
validateFailedIndexesNotOverlapCompleted
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.text.field_problem import quoted
from fairlead.api.text.integer import parse_int64

Interval = tuple[int, int]

_TWO_PARTS: Final = (
    "violates the requirement that an index interval can have at most two parts separated by '-'"
)


class IndexTextError(ValueError):
    """The error for a text that is not a list of index intervals."""


def index_intervals(text: str, completions: int) -> list[Interval]:
    """Return (first index, last index) of each interval in `text`, in ascending order.

    An empty text has no intervals. Raises IndexTextError if the text is malformed, or if an index
    is not below `completions`. Also raises IndexTextError if the intervals overlap or are not in
    ascending order.
    """
    made: list[Interval] = []
    for part in text.split(",") if text else ():
        low, high = _interval(part, completions)
        if made and low <= made[-1][1]:
            raise _out_of_order(made[-1][1], low)
        made.append((low, high))
    return made


def shared_index(first: str, second: str, completions: int) -> int | None:
    """Return an index that is in an interval of `first` and in an interval of `second`.

    Return None if there is no such index. Malformed intervals are ignored, and so are intervals
    with an index that is not below `completions`.
    """
    mine, theirs = _readable(first, completions), _readable(second, completions)
    left, right = next(mine, None), next(theirs, None)
    while left and right:
        if left[0] <= right[1] and right[0] <= left[1]:
            return max(left[0], right[0])
        if left[0] <= right[0]:
            left = next(mine, None)
        else:
            right = next(theirs, None)
    return None


def _readable(text: str, completions: int) -> Iterator[Interval]:
    for part in text.split(","):
        try:
            yield _interval(part, completions)
        except IndexTextError:
            continue


def _interval(text: str, completions: int) -> Interval:
    bounds = text.split("-")
    if len(bounds) > 2:
        raise IndexTextError(f"the fragment {quoted(text)} {_TWO_PARTS}")
    low, high = _index(bounds[0], completions), _index(bounds[-1], completions)
    if len(bounds) == 2 and low >= high:
        raise _out_of_order(low, high)
    return low, high


def _index(text: str, completions: int) -> int:
    index = parse_int64(text)
    if index is None:
        raise IndexTextError(f"cannot convert string to integer for index: {quoted(text)}")
    if index >= completions:
        raise IndexTextError(f"too large index: {quoted(text)}")
    return index


def _out_of_order(before: int, index: int) -> IndexTextError:
    return IndexTextError(f"non-increasing order, previous: {before}, current: {index}")
