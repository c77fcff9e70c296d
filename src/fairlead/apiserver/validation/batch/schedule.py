"""Validates cron expressions and time zones.

upstream: github.com/robfig/cron/v3/parser.go, pkg/apis/batch/validation/validation.go
"""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairlead.api.text.integer import capped_integer

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_AMOUNT: Final = re.compile(r"([0-9]*\.?[0-9]*)([^0-9.]*)")
_UNITS: Final = ("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h")
# Greater numbers are read as this number, which is far above the bounds of every field.
_NUMBER_MAX: Final = 1_000_000
# The least value, the greatest value and the names of values of each field of a cron expression.
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def schedule_problem(text: str) -> str:
    """Return the error text if `text` is not a cron expression or macro; "" if it is one."""
    if text.startswith("@"):
        if text.startswith("@every "):
            problem = _duration_problem(text.removeprefix("@every "))
            return f"failed to parse duration {text}: {problem}" if problem else ""
        return "" if text in MACROS else f"unrecognized descriptor: {text}"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        listed = " ".join(parts)
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{listed}]"
    for part, (least, most, names) in zip(parts, _FIELDS, strict=True):
        for expression in part.split(","):
            problem = _range_problem(expression, least, most, names)
            if problem:
                return problem
    return ""


def _duration_problem(text: str) -> str:
    """Return the error text if `text` is not a Go duration such as `1h30m`; "" if it is one."""
    # Go: time/format.go:ParseDuration
    amounts = text[1:] if text[:1] in ("-", "+") else text
    if amounts == "0":
        return ""
    end = 0
    for amount in _AMOUNT.finditer(amounts):
        if amount.start() != end or not any(map(str.isdigit, amount[1])):
            break
        if not amount[2]:
            return f'time: missing unit in duration "{text}"'
        if amount[2] not in _UNITS:
            return f'time: unknown unit "{amount[2]}" in duration "{text}"'
        end = amount.end()
    return "" if amounts and end == len(amounts) else f'time: invalid duration "{text}"'


def time_zone_problem(name: str) -> str:
    """Return the error text if `name` is not a time zone; "" if it is one."""
    # upstream: pkg/apis/batch/validation/validation.go:validateTimeZone
    if not name:
        return "timeZone must be nil or non-empty string"
    if name.lower() == "local":
        return (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: `name` is a directory.
        return f"unknown time zone {name}"
    return ""


def _range_problem(expression: str, least: int, most: int, names: dict[str, int]) -> str:
    """Return the error text if `expression` is not a range of a cron field; "" if it is one.

    Examples of ranges are `*`, `5`, `1-5`, `*/2` and `mon-fri/2`. The values of the field are the
    numbers from `least` to `most`; `names` maps names such as `mon` to values.
    """
    bounds, _, step_text = expression.partition("/")
    if expression.count("/") > 1:
        return f"too many slashes: {expression}"
    start, end = least, most
    if bounds not in ("*", "?"):
        ends = bounds.split("-")
        if len(ends) > 2:
            return f"too many hyphens: {expression}"
        numbers = [_number(one, names) for one in ends]
        for number, one in zip(numbers, ends, strict=True):
            if number is None:
                return (
                    f'failed to parse int from {one}: strconv.Atoi: parsing "{one}": invalid syntax'
                )
        start = numbers[0] or 0
        end = (numbers[-1] or 0) if len(ends) > 1 or not step_text else most
    return _bounds_problem(expression, (start, end), (least, most), step_text)


def _bounds_problem(
    expression: str, found: tuple[int, int], allowed: tuple[int, int], step_text: str
) -> str:
    start, end = found
    least, most = allowed
    if start < least:
        return f"beginning of range ({start}) below minimum ({least}): {expression}"
    if end > most:
        return f"end of range ({end}) above maximum ({most}): {expression}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {expression}"
    if step_text and not step_text.isdecimal():
        return (
            f"failed to parse int from {step_text}: "
            f'strconv.Atoi: parsing "{step_text}": invalid syntax'
        )
    if step_text and not step_text.strip("0"):
        return f"step of range should be a positive number: {expression}"
    return ""


def _number(text: str, names: dict[str, int]) -> int | None:
    known = names.get(text.lower())
    if known is not None:
        return known
    return capped_integer(text, _NUMBER_MAX) if text.isdecimal() and text.isascii() else None
