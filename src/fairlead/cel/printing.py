"""Values as `format` prints them, where the library prints them in another way.

upstream: cel-go's ext/formatting.go
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any


def printable(items: list[Any]) -> list[Any]:
    """What is to be printed, with texts in place of lists, maps and times."""
    return [item if _is_plain(item) else _text(item) for item in items]


def _is_plain(value: Any) -> bool:
    return not isinstance(value, list | dict | datetime | timedelta)


def _text(value: Any) -> str:
    match value:
        case list():
            return f"[{', '.join(map(_inner, value))}]"
        case dict():
            entries = sorted((_inner(key), _inner(one)) for key, one in value.items())
            return f"{{{', '.join(f'{key}:{one}' for key, one in entries)}}}"
        case datetime():
            return _instant(value)
        case timedelta():
            return _duration(value)
        case _:
            return str(value)


def _inner(value: Any) -> str:
    """A value within another one."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes() | bytearray():
            return f"b{json.dumps(value.decode(errors='replace'), ensure_ascii=False)}"
        case bool():
            return str(value).lower()
        case None:
            return "null"
        case float():
            return f"{value:.6f}"
        case _:
            return _text(value)


def _instant(value: datetime) -> str:
    utc = value.astimezone(UTC) if value.tzinfo else value
    fraction = f".{utc.microsecond:06}".rstrip("0") if utc.microsecond else ""
    return f"{utc:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _duration(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    whole, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}{whole}{fraction}s"
