"""Deadlines that clients set; requests here are too short to have one, but it must be one.

upstream: apiserver/pkg/endpoints/filters/request_deadline.go, time/format.go:ParseDuration
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.field_problem import quoted
from fairlead.api.timestamp import parse_duration
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.request import Request

_TERM: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?P<unit>[^0-9.]*)")
_UNITS: Final = ("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h")


def require_timeout(request: Request) -> None:
    """Refuse a deadline that is none. Raises ApiError 400."""
    text = request.parameter("timeout") if request.query else ""
    if text:
        try:
            parse_duration(text)
        except ValueError:
            why = f"time: {_problem(text)}"
            raise bad_request(f"invalid timeout specified in the request URL - {why}") from None


def _problem(text: str) -> str:
    """Why `text` is no duration."""
    at = 1 if text[:1] in ("+", "-") else 0
    while found := _TERM.match(text, at):
        unit = found["unit"]
        if not unit:
            return f"missing unit in duration {quoted(text)}"
        if unit not in _UNITS:
            return f"unknown unit {quoted(unit)} in duration {quoted(text)}"
        at = found.end()
    return f"invalid duration {quoted(text)}"
