"""LogEntry: one line of a log, as text in klog's format or as a JSON object.

    I0101 00:01:00.000000 scheduler] "Placed pod on node" pod="default/web-0" node="node-1"
    W0101 00:01:01.000000 fairlead] no permission to read nodes

A line with key-value pairs is structured: its message is quoted. A line without pairs is prose. In
JSON, the keys `ts` (milliseconds since 1970), `level`, `v`, `logger` and `msg` come first.

upstream: klog/v2/klog.go, component-base/logs/json/json.go: NewJSONLogger
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import Instant

Pairs = dict[str, Any]
LogSeverity = Literal["info", "warning", "error"]
_LETTERS: Final[dict[LogSeverity, str]] = {"info": "I", "warning": "W", "error": "E"}


class LogEntry(Struct, frozen=True):
    """One log line: verbosity, component, message and key-value pairs.

    `pairs` is None if the message is prose that contains all details.
    """

    verbosity: int
    component: str
    message: str
    pairs: Pairs | None = None
    severity: LogSeverity = "info"


EntryForm = Callable[[LogEntry, Instant], str]


def entry_text(entry: LogEntry, now: Instant) -> str:
    """Return `entry` as text without a line end; the text contains the time `now`."""
    message = entry.message if entry.pairs is None else f'"{entry.message}"'
    pairs = "".join(f" {key}={_value(value)}" for key, value in (entry.pairs or {}).items())
    return f"{_LETTERS[entry.severity]}{clock_text(now)} {entry.component}] {message}{pairs}"


def entry_json(entry: LogEntry, now: Instant) -> str:
    """Return `entry` as a JSON object without a line end; the object contains the time `now`."""
    head = {
        "ts": now // 1000 * 1000 / NANOSECONDS_PER_MILLISECOND,
        "level": entry.severity,
        "v": entry.verbosity,
        "logger": entry.component,
        "msg": entry.message,
    }
    return _value({**head, **(entry.pairs or {})})


FORMS: Final[dict[str, EntryForm]] = {"text": entry_text, "json": entry_json}


def clock_text(instant: Instant) -> str:
    """Return `instant` as month, day and time with microseconds, in klog's format, in UTC."""
    whole, rest = divmod(instant, NANOSECONDS_PER_SECOND)
    return f"{datetime.fromtimestamp(whole, UTC):%m%d %H:%M:%S}.{rest // 1000:06d}"


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()
