"""RefusedResourceLog: logs one line when the API server refuses to list and watch resources.

    13 resources cannot be read (status 403); the known objects are used: nodes, pods, …
    13 resources can be read again

Such lines are also logged if the server cannot be reached or sends invalid responses.

While an API server starts, it refuses all watches until it has read the roles. These refusals come
within a few seconds of each other, and are reported in one line. So the line is logged after
QUIET_S seconds in which no further resource becomes unreadable or readable again, but at the latest
WAIT_S_MAX seconds after the first such change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from fairlead.worlds.cluster.telemetry.run_log import RunLog

QUIET_S: Final = 5.0
WAIT_S_MAX: Final = 30.0


class TimerHandle(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class CallLater(Protocol):
    """Makes a call after some seconds, as the `call_later` of an event loop does."""

    def __call__(self, seconds: float, call: Callable[[], None], /) -> TimerHandle:
        """Schedule `call` and return its handle."""
        ...


class RefusedResourceLog:
    """Collects which resources the server refuses or serves again, and logs them together."""

    def __init__(
        self,
        log: RunLog,
        call_later: CallLater,
        clock: Callable[[], float],
        quiet_s: float = QUIET_S,
    ) -> None:
        """`log` receives each line; `clock` returns seconds."""
        self._log = log
        self._call_later = call_later
        self._clock = clock
        self._quiet_s = quiet_s
        self._refused: dict[str, str] = {}
        self._newly_refused: dict[str, str] = {}
        self._has_known = False  # whether objects of a newly refused resource are known
        self._served_again: set[str] = set()
        self._timer: TimerHandle | None = None
        self._began = 0.0

    def notice(self, name: str, problem: str, *, is_known: bool = True) -> None:
        """Record that the resource `name` cannot be read because of `problem`.

        If `problem` is "", record that the resource can be read. `is_known` means that the
        resource has been read before.
        """
        if bool(problem) == (name in self._refused):
            return
        if problem:
            self._refused[name] = self._newly_refused[name] = problem
            self._has_known |= is_known
            self._served_again.discard(name)
        else:
            del self._refused[name]
            self._served_again.add(name)
        now = self._clock()
        if self._timer is None:
            self._began = now
        else:
            self._timer.cancel()
        wait = min(self._quiet_s, max(0.0, self._began + WAIT_S_MAX - now))
        self._timer = self._call_later(wait, self.flush)

    def flush(self) -> None:
        """Log now which resources have become unreadable, or readable again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        refused, again = sorted(self._newly_refused), sorted(self._served_again)
        problems = ", ".join(sorted(set(self._newly_refused.values())))
        instead = "the known objects are used" if self._has_known else "trying again"
        self._has_known = False
        self._newly_refused.clear()
        self._served_again.clear()
        if len(refused) == 1:
            self._log.problem(f"{refused[0]} cannot be read ({problems}); {instead}")
        elif refused:
            count, names = len(refused), ", ".join(refused)
            self._log.problem(f"{count} resources cannot be read ({problems}); {instead}: {names}")
        if again:
            what = again[0] if len(again) == 1 else f"{len(again)} resources"
            rest = "" if not self._refused else f", but not {', '.join(sorted(self._refused))}"
            self._log.note(f"{what} can be read again{rest}")
