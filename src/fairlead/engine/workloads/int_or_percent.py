"""Reads IntOrString fields such as maxUnavailable: a number, or a percentage of a total."""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.text.integer import capped_integer

# The highest number of an IntOrString (int32). A higher percentage counts as this percentage.
PERCENT_MAX: Final = 2**31 - 1
_PERCENT: Final = re.compile(r"([0-9]+)%")


class IntOrPercentError(ValueError):
    """Raised if an IntOrString field is neither a number nor a percentage."""


def scaled(value: int | str, total: int, *, is_rounded_up: bool = True) -> int:
    """Return `value` if it is a number; if it is a percentage, return that part of `total`.

    The part is rounded up if `is_rounded_up` is set, otherwise down.

    Raises IntOrPercentError if `value` is neither a number nor a percentage.
    """
    # upstream: apimachinery/pkg/util/intstr/intstr.go:GetScaledValueFromIntOrPercent
    if isinstance(value, int):
        return value
    percent = _PERCENT.fullmatch(value)
    if percent is None:
        raise IntOrPercentError(
            "invalid value for IntOrString: invalid type: string is not a percentage"
        )
    product = capped_integer(percent[1], PERCENT_MAX) * total
    return -(-product // 100) if is_rounded_up else product // 100
