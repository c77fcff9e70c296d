"""RunLog: logs what happens to a replica. `DecisionLog` logs the decisions of the replica."""

from __future__ import annotations

from collections.abc import Callable
from logging import ERROR, WARNING, Handler, LogRecord
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.worlds.log_entry import LogEntry, LogSeverity

_COMPONENT: Final = "fairlead"


class RunLog:
    """Writes each message as a line with the current time."""

    def __init__(
        self, write: Callable[[LogEntry, Instant], None], clock: Callable[[], Instant]
    ) -> None:
        """`write` is called for each line, with its LogEntry and the time that `clock` returns."""
        self._write = write
        self._clock = clock

    def note(self, message: str) -> None:
        """Log a change that needs no attention, as an info line."""
        self._log(message, "info")

    def problem(self, message: str) -> None:
        """Log, as a warning, a problem that does not stop the replica."""
        self._log(message, "warning")

    def failure(self, message: str) -> None:
        """Log the problem that ends the run, with the severity `error`."""
        self._log(message, "error")

    def write(self, entry: LogEntry) -> None:
        """Write the line `entry` with the current time."""
        self._write(entry, self._clock())

    def _log(self, message: str, severity: LogSeverity) -> None:
        self.write(LogEntry(0, _COMPONENT, message, severity=severity))


SILENT: Final = RunLog(lambda _line, _now: None, lambda: 0)


class LibraryLogHandler(Handler):
    """Writes to a RunLog what libraries and users' plugins log with Python's `logging`."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: LogRecord) -> None:
        """Write `record` with the name of its logger; also write its traceback if there is one."""
        severity: LogSeverity = "info"
        if record.levelno >= WARNING:
            severity = "error" if record.levelno >= ERROR else "warning"
        self._log.write(LogEntry(0, record.name, self.format(record), severity=severity))
