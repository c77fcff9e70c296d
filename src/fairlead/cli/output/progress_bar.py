"""A progress bar on stderr during a run; disabled if stderr is not a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

REFRESH_S: Final = 0.1


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Shows each phase as a bar with the virtual time reached."""

    def __init__(self, console: Console | None = None) -> None:
        """`console` replaces stderr, for tests."""
        self._progress = _progress(console) if console or _may_be_terminal() else None
        self._phase: TaskID | None = None
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def begin(self, phase: str, total: int) -> None:
        """Show a new phase."""
        if self._progress is None:
            return
        if self._phase is not None:
            self._progress.remove_task(self._phase)
        self._phase = self._progress.add_task(phase, total=total or None, virtual_time="0s")
        self._progress.refresh()

    def reach(self, done: int, now_s: float) -> None:
        """Update the bar, at most once per REFRESH_S."""
        if self._progress is None or self._progress.disable or self._phase is None:
            return
        instant = perf_counter()
        if instant - self._shown_at >= REFRESH_S:
            self._shown_at = instant
            virtual_time = for_readers(seconds(now_s))
            self._progress.update(
                self._phase, completed=done, virtual_time=virtual_time, refresh=True
            )


def _may_be_terminal() -> bool:
    return sys.stderr.isatty() or bool({"FORCE_COLOR", "TTY_COMPATIBLE"} & os.environ.keys())


def _progress(console: Console | None) -> Progress:
    # rich takes as long to import as a small answer.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = console or Console(file=sys.stderr)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[virtual_time]} of virtual time"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        auto_refresh=False,  # by a thread, with which the process could not be forked
    )
