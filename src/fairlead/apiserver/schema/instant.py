"""Why a text is no instant, in the words of the language that upstream is written in.

upstream: time.Parse's ParseError; apimachinery/pkg/apis/meta/v1/{time,micro_time}.go
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.timestamp import parse_timestamp

TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICRO_TIME_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

# Each piece of a text, and what stands for it in a layout.
_PIECES: Final = (
    (r"[0-9]{4}", "2006"), ("-", "-"), (r"[0-9]{2}", "01"), ("-", "-"), (r"[0-9]{2}", "02"),
    ("T", "T"), (r"[0-9]{2}", "15"), (":", ":"), (r"[0-9]{2}", "04"), (":", ":"),
    (r"[0-9]{2}", "05"),
)  # fmt: skip
_FRACTION: Final = (r"\.[0-9]+", "")
_MICROS: Final = (r"\.[0-9]{6}(?![0-9])", ".000000")
_ZONE: Final = (r"Z|[+-][0-9]{2}:[0-9]{2}", "Z07:00")


def time_problem(text: str) -> str:
    """Why `text` is no metav1.Time; "" if it is one."""
    if _is_instant(text):
        return ""
    return _problem(text, TIME_LAYOUT, (*_PIECES, _FRACTION, _ZONE))


def micro_time_problem(text: str) -> str:
    """Why `text` is no metav1.MicroTime, which has six decimals; "" if it is one."""
    if _is_instant(text) and re.search(r"\.[0-9]{6}(Z|[+-])", text):
        return ""
    return _problem(text, MICRO_TIME_LAYOUT, (*_PIECES, _MICROS, _ZONE))


def _is_instant(text: str) -> bool:
    try:
        parse_timestamp(text)
    except ValueError:
        return False
    return True


def _problem(text: str, layout: str, pieces: tuple[tuple[str, str], ...]) -> str:
    at = 0
    for pattern, stands_for in pieces:
        matched = re.compile(pattern).match(text, at)
        if matched is None and stands_for:
            return (
                f'parsing time "{text}" as "{layout}": cannot parse "{text[at:]}" as "{stands_for}"'
            )
        at = matched.end() if matched else at
    if text[at:]:
        return f'parsing time "{text}": extra text: "{text[at:]}"'
    return f'parsing time "{text}": day out of range'
