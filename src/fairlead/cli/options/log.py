"""Options for the logging of decisions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.parameter import OUTPUT, integer
from fairlead.whatif.input.error import InputError

if TYPE_CHECKING:
    from fairlead.engine.core.instant import Instant
    from fairlead.worlds.decision_log import Logging
    from fairlead.worlds.log_entry import LogEntry

Level = Literal["info", "debug", "trace"]
LOG_LEVEL_HELP: Final = (
    "Log decisions to standard error: info (the decisions), debug (with details) or trace (with "
    "all details). By default, no decision is logged."
)
VERBOSITY_HELP: Final = (
    "Log decisions with klog's verbosity N: 2 means --log-level info, 4 means debug, and 5 or more "
    "means trace."
)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class DecisionLogOptions:
    """The options that choose which decisions are logged; by default, no decision is logged."""

    log_level: Annotated[
        Level | None, Parameter(help=LOG_LEVEL_HELP, show_choices=False, show_default=False)
    ] = None
    verbosity: Annotated[
        int | None,
        Parameter(name="-v", help=VERBOSITY_HELP, metavar="N", converter=integer),
    ] = None

    @property
    def logging(self) -> Logging | None:
        """A function that adds logging to a reporter; None if logging is off.

        The function has two arguments: a reporter, which receives the decisions after they are
        logged, and a callable that returns the current time. The function returns the new reporter.
        Raises InputError if both --log-level and -v are given, or if -v is negative.
        """
        if self.log_level is None and self.verbosity is None:
            return None
        return self.logging_with_warnings()

    def logging_with_warnings(
        self, write: Callable[[LogEntry, Instant], None] | None = None
    ) -> Logging:
        """Return a function like the one in the property `logging`, but never None.

        If neither --log-level nor -v is given, the function's reporter logs only errors and
        warnings. `write` receives each line and its time; by default, lines are written to standard
        error. Raises InputError if both --log-level and -v are given, or if -v is negative.
        """
        if self.log_level is not None and self.verbosity is not None:
            raise InputError("-v", "cannot be combined with --log-level")
        if self.verbosity is not None and self.verbosity < 0:
            raise InputError("-v", "must be 0 or more")
        # Imported only here, because it takes long to import and is rarely needed.
        from fairlead.worlds.decision_log import LEVELS, DecisionLog

        level = LEVELS[self.log_level] if self.log_level is not None else self.verbosity or 0
        return partial(DecisionLog, write=write or _write, verbosity=level)


NO_DECISION_LOG: Final = DecisionLogOptions()


def _write(entry: LogEntry, now: Instant) -> None:
    from fairlead.worlds.log_entry import entry_text

    print(entry_text(entry, now), file=sys.stderr)
