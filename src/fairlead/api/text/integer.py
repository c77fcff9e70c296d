"""Parses integers as Go does, with any number of digits."""

from __future__ import annotations

import re
from typing import Final

_DECIMAL: Final = re.compile(r"[+-]?[0-9]+")
# int() rejects longer texts. Their numbers do not fit into 64 bits, except with leading zeros.
_LENGTH_MAX: Final = 4000
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def parse_int64(text: str) -> int | None:
    """Return decimal `text` as a number; None if it is not an integer or does not fit into 64 bits.

    Leading zeros and a sign are accepted; spaces and underscores are refused.
    """
    # upstream: Go's strconv.ParseInt with base 10 and 64 bits
    if len(text) > _LENGTH_MAX or not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if _INT64_MIN <= number <= _INT64_MAX else None


def capped_integer(digits: str, most: int) -> int:
    """Return decimal `digits` as a number, or `most` if the number is larger.

    Unlike Python's `int`, this function accepts any number of digits.
    """
    significant = digits.lstrip("0")
    if len(significant) > len(str(most)):
        return most
    return min(int(significant or "0"), most)
