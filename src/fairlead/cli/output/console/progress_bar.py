"""A progress bar on stderr during a run; disabled if stderr is not a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

REFRESH_S: Final = 0.1
_BYTES_PER_MB: Final = 1e6


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Shows a bar for each phase of a command, such as reading or simulating.

    Beside the bar is the amount of input that was read, or the virtual time of the simulated run.
    """

    def __init__(self, console: Console | None = None) -> None:
        """The bars appear on `console` if it is given (for tests), else on stderr.

        No bars appear on stderr if it is not a terminal, or if the terminal is dumb.
        """
        self._progress = _progress(console) if console or is_terminal(sys.stderr) else None
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

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar within the `with` block, in which the caller prints text.

        After the block, there is no bar until the next phase begins.
        """
        if self._progress is None:
            yield
            return
        self._progress.stop()
        if self._phase is not None:
            self._progress.remove_task(self._phase)
            self._phase = None
        try:
            yield
        finally:
            self._progress.start()

    def begin(self, phase: str, total: int) -> None:
        """Show the bar of a new phase with `total` steps; 0 means that the number is unknown."""
        if self._progress is None:
            return
        if self._phase is not None:
            self._progress.remove_task(self._phase)
        self._phase = self._progress.add_task(phase, total=total or None, detail="")
        self._progress.refresh()

    def read(self, unit: str, done: int, total: int) -> None:
        """Show that `done` of `total` bytes or objects were read.

        `unit` is "bytes", or the plural of what is counted. A `total` of 0 means unknown.
        """
        if self._is_due():
            of = f" of {total:,}" if total else ""
            is_size = unit == "bytes"
            amount = f"{done / _BYTES_PER_MB:,.0f} MB" if is_size else f"{done:,}{of} {unit}"
            self._show(done, amount, total)

    def reach(self, done: int, now_s: float) -> None:
        """Advance the bar to `done`, and show the virtual time `now_s` (seconds) beside the bar.

        If `now_s` is 0, the number `done` is shown beside the bar instead.
        """
        if self._is_due():
            time = f"{for_readers(seconds(now_s))} of virtual time"
            self._show(done, time if now_s else f"{done:,}")

    def _is_due(self) -> bool:
        """Return whether to update the bar; it is updated at most once per REFRESH_S."""
        if self._progress is None or self._progress.disable:
            return False
        instant = perf_counter()
        if instant - self._shown_at < REFRESH_S:
            return False
        self._shown_at = instant
        return True

    def _show(self, done: int, detail: str, total: int | None = None) -> None:
        if self._progress is not None and self._phase is not None:
            if total is not None:
                self._progress.update(self._phase, total=total or None)
            self._progress.update(self._phase, completed=done, detail=detail, refresh=True)


def is_terminal(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal, or counts as one because of TTY_COMPATIBLE=1.

    If FORCE_COLOR is set, rich counts every stream as a terminal. This function ignores
    FORCE_COLOR, because CI systems set it only to get colours in their logs. This function does not
    import rich.
    """
    return stream.isatty() or os.environ.get("TTY_COMPATIBLE") == "1"


def _progress(console: Console | None) -> Progress:
    # Imported only here, because rich takes as long to import as a small answer takes.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = console or Console(file=sys.stderr)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        transient=True,
        disable=not console.is_interactive,  # a dumb terminal would show an empty line per bar
        auto_refresh=False,  # Automatic refresh would need a thread, which makes forking unsafe.
    )
