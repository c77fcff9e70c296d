"""Timestamps as Go's time.Parse reads them, and its error messages.

`api.timestamp.parse_timestamp` reads most timestamps. Where it fails, this module reads the other
timestamps that Go accepts. These timestamps have an hour of one digit, a comma before the fraction,
or a zone offset of up to 24 hours and 60 minutes.

Go reports the leftmost invalid part, except that it checks the day of the month last.

upstream: time.Parse; apimachinery/pkg/apis/meta/v1/{time,micro_time}.go
"""

from __future__ import annotations

import re
from calendar import monthrange
from contextlib import suppress
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp

TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICRO_TIME_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_NANOS_DIGITS: Final = 9
_YEARS: Final = range(1, 10_000)
_FIRST: Final = parse_timestamp("0001-01-01T00:00:00Z")
_LAST: Final = parse_timestamp("9999-12-31T23:59:59.999999999Z")

# Each part of a timestamp: its layout, its pattern, its name in errors, and its greatest value.
_DATE: Final = (
    ("2006", r"[0-9]{4}", "", 9999), ("-", "-", "", 0), ("01", r"[0-9]{2}", "month", 12),
    ("-", "-", "", 0), ("02", r"[0-9]{2}", "", 99), ("T", "T", "", 0),
    ("15", r"[0-9]{1,2}", "hour", 23), (":", ":", "", 0), ("04", r"[0-9]{2}", "minute", 59),
    (":", ":", "", 0), ("05", r"[0-9]{2}", "second", 59),
)  # fmt: skip
_FRACTION: Final = re.compile(r"[.,][0-9]+")
_MICROS: Final = re.compile(r"[.,]([0-9]{6}|[+-][0-9]{5})")
_USUAL_MICROS: Final = re.compile(r"\.[0-9]{6}(Z|[+-][0-9]{2}:[0-9]{2})")
_DATE_LENGTH: Final = len("2006-01-02T15:04:05")
_ZONE: Final = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")


class InstantError(ValueError):
    """The text is not a timestamp; the message is Go's."""


def read_time(text: str) -> int:
    """Return `text`, a metav1.Time, in ns since 1970. Raises InstantError if it is malformed."""
    try:
        return parse_timestamp(text)
    except ValueError:
        return _Reading(text, TIME_LAYOUT).instant(is_micro=False)


def read_micro_time(text: str) -> int:
    """Return `text`, a metav1.MicroTime with six decimals, in ns since 1970.

    Raises InstantError if `text` is malformed.
    """
    if _USUAL_MICROS.fullmatch(text, _DATE_LENGTH):
        with suppress(ValueError):
            return parse_timestamp(text)
    return _Reading(text, MICRO_TIME_LAYOUT).instant(is_micro=True)


class _Reading:
    """Parses one text part by part; `_rest` is the text that has not been parsed."""

    def __init__(self, text: str, layout: str) -> None:
        self._text = text
        self._layout = layout
        self._rest = text

    def instant(self, *, is_micro: bool) -> int:
        numbers = [self._piece(*piece) for piece in _DATE]
        fraction = self._micros() if is_micro else self._fraction()
        zone = self._zone()
        if self._rest:
            raise self._wrong(f"extra text: {_quoted(self._rest)}")
        year, _, month, _, day, _, hour, _, minute, _, second = numbers
        if year not in _YEARS or not 1 <= day <= monthrange(year, month)[1]:
            raise self._wrong("day out of range")
        midnight = parse_timestamp(f"{year:04}-{month:02}-{day:02}T00:00:00Z")
        seconds = (hour * 60 + minute) * 60 + second - zone
        instant = midnight + seconds * NANOSECONDS_PER_SECOND
        instant += int(f"{fraction:0<{_NANOS_DIGITS}.{_NANOS_DIGITS}}")
        # Upstream accepts these times, but `api.timestamp` cannot represent them.
        if not _FIRST <= instant <= _LAST:
            raise self._wrong("day out of range")
        return instant

    def _piece(self, stands_for: str, form: str, name: str, most: int) -> int:
        matched = re.match(form, self._rest)
        if matched is None:
            raise self._unlike(stands_for)
        self._rest = self._rest[matched.end() :]
        if not matched[0].isdigit():
            return 0
        number = int(matched[0])
        if number > most or (name == "month" and not number):
            raise self._wrong(f"{name} out of range")
        return number

    def _fraction(self) -> str:
        matched = _FRACTION.match(self._rest)
        if matched is None:
            return ""
        self._rest = self._rest[matched.end() :]
        return matched[0][1:]

    def _micros(self) -> str:
        matched = _MICROS.match(self._rest)
        if matched is None:
            raise self._unlike(".000000")
        self._rest = self._rest[matched.end() :]
        digits = matched[1]
        if digits.startswith("-") and int(digits):
            raise self._wrong("fractional second out of range")
        return f"{int(digits):06}"

    def _zone(self) -> int:
        """Return the zone offset in seconds east of UTC."""
        matched = _ZONE.match(self._rest)
        if matched is None:
            raise self._unlike("Z07:00")
        self._rest = self._rest[matched.end() :]
        if matched[0] == "Z":
            return 0
        hours, minutes = int(matched[0][1:3]), int(matched[0][4:])
        # Go allows 60 minutes and 24 hours. If both are too large, Go reports the minutes.
        if minutes > 60:
            raise self._wrong("time zone offset minute out of range")
        if hours > 24:
            raise self._wrong("time zone offset hour out of range")
        seconds = (hours * 60 + minutes) * 60
        return -seconds if matched[0].startswith("-") else seconds

    def _unlike(self, stands_for: str) -> InstantError:
        return InstantError(
            f"parsing time {_quoted(self._text)} as {_quoted(self._layout)}: "
            f"cannot parse {_quoted(self._rest)} as {_quoted(stands_for)}"
        )

    def _wrong(self, what: str) -> InstantError:
        return InstantError(f"parsing time {_quoted(self._text)}: {what}")


def _quoted(text: str) -> str:
    # upstream: time/format.go:quote
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "\x7f":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
