"""Adds floats with the same result on every version of Python."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce


def float_sum(values: Iterable[float]) -> float:
    """Add `values` one after the other, as Go does; return 0 if there are none.

    Since Python 3.12, `sum` corrects the rounding errors of floats. Its result can therefore differ
    from upstream's sum in the last digit. Two sums that are equal in upstream could then be
    unequal here.
    """
    return reduce(operator.add, values, 0)
