"""Finds the first mismatch between two JSON values, and reads case files."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.engine.core.instant import DurationNs

ABSENT: Final = "(absent)"
_SHOWN_MAX: Final = 300
_DAY_MS: Final = 24 * 3600 * 1000


class Mismatch(Struct, frozen=True):
    """The first mismatch of a case; `path` is a text such as `filter.n1.reasons[0]`.

    If only one side has a value, the other value is ABSENT.
    """

    path: str
    expected: object
    found: object

    @property
    def shown(self) -> str:
        """The found value as JSON, cut to 300 characters."""
        return _shown(self.found)

    def __str__(self) -> str:
        """Return `path: expected …, found …`; each value is cut to 300 characters."""
        return f"{self.path}: expected {_shown(self.expected)}, found {_shown(self.found)}"


class Remark(Struct, frozen=True):
    """A note on a case. The case counts as `verdict`, not as agreement or mismatch."""

    text: str
    verdict: str = "corrected"

    def __str__(self) -> str:
        """Return `text`."""
        return self.text


def _shown(value: object) -> str:
    text = value if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return str(text) if len(str(text)) <= _SHOWN_MAX else f"{str(text)[:_SHOWN_MAX]}…"


def first_mismatch(expected: object, found: object, path: str = "") -> Mismatch | None:
    """Return the first mismatch in the order of the sorted keys; None if the values are equal.

    `path` is the path of both values in the case.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            inner = first_mismatch(
                expected.get(key, ABSENT), found.get(key, ABSENT), f"{path}.{key}".lstrip(".")
            )
            if inner is not None:
                return inner
        return None
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip_longest(expected, found, fillvalue=ABSENT)
        for i, (a, b) in enumerate(pairs):
            inner = first_mismatch(a, b, f"{path}[{i}]")
            if inner is not None:
                return inner
        return None
    return None if expected == found else Mismatch(path, expected, found)


class CaseFileError(ValueError):
    """The file is not a case file, or one of its cases has the wrong kind or cannot be replayed."""


def duration_ms(form: Json, name: str = "duration_ms", *, least: int = 0) -> int:
    """Return the member `name` of `form`, a duration in ms.

    Raises KeyError if the member is missing. Raises ValueError if the duration is less than `least`
    or more than one day. Replaying a longer time would take too long.
    """
    return _limited(form, name, least, _DAY_MS)


def duration_ns(form: Json, name: str) -> DurationNs:
    """Return the member `name` of `form`, a duration in ns.

    Raises KeyError if the member is missing, and ValueError if the duration is negative or more
    than one day.
    """
    return _limited(form, name, 0, _DAY_MS * NANOSECONDS_PER_MILLISECOND)


def _limited(form: Json, name: str, least: int, most: int) -> int:
    found: int = form[name]
    if not least <= found <= most:
        raise ValueError(f"{name} is {found}; expected a number from {least} to {most}")
    return found


def read_cases(path: Path, fields: Sequence[str]) -> Iterator[Json]:
    """Yield the JSON objects in the lines of a case file, which may be gzipped.

    Empty lines are skipped. `fields` contains the names of required members. Raises CaseFileError
    if the file is not UTF-8 text, or if a line is not an object with the required members. Each
    required member must be an object. Raises OSError if the file cannot be read.
    """
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        with gzip.open(raw) if packed else raw as lines:
            try:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield _case(path, number, line.decode(), fields)
            except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as cause:
                raise CaseFileError(f"{path}: not a text or gzip file: {cause}") from None


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have; a time that is NaN would never come."""
    raise ValueError(f"{name} is no number")


def _case(path: Path, number: int, line: str, fields: Sequence[str]) -> Json:
    try:
        found = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as cause:  # a ValueError for 4301 digits
        raise CaseFileError(f"{path}: line {number}: not JSON: {cause}") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(f), dict) for f in fields):
        members = f" whose members {' and '.join(fields)} are objects" if fields else ""
        raise CaseFileError(f"{path}: line {number}: expected an object{members}")
    return found
