"""Percentiles by nearest rank: each percentile is a value that occurred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Value = TypeVar("Value", int, float, int | float)


def percentile(ordered: Sequence[Value], percent: int) -> Value:
    """Return the smallest value that is at least as large as `percent` % of the values.

    `ordered` contains the values in ascending order and is not empty. Of 10 values, the 5th is the
    median, and the 9th is the 90th percentile.
    """
    return ordered[_rank(len(ordered), percent) - 1]


def percentile_of_all(ordered: Sequence[Value], total: int, percent: int) -> Value | None:
    """Return a percentile of `total` values, of which only the smallest are known.

    `ordered` contains the known values in ascending order. Return None if the percentile is one of
    the unknown values.
    """
    rank = _rank(total, percent)
    return ordered[rank - 1] if rank <= len(ordered) else None


def _rank(count: int, percent: int) -> int:
    return max(1, -(-count * percent // 100))
