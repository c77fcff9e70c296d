"""Progress: receives the progress of a run, for a progress bar."""

from __future__ import annotations

from mmap import mmap
from typing import Protocol


class Progress(Protocol):
    """Receives the phases of the work and the progress within each phase."""

    def begin(self, phase: str, total: int) -> None:
        """Start `phase`, which has `total` parts (0: unknown)."""
        ...

    def reach(self, done: int, now_s: float) -> None:
        """Record that `done` parts are complete; `now_s` is virtual seconds since the start.

        This method may be called in a forked process.
        """
        ...


class NoProgress:
    """Discards progress."""

    def begin(self, phase: str, total: int) -> None:
        """Do nothing."""

    def reach(self, done: int, now_s: float) -> None:
        """Do nothing."""


class PhasesInTurn:
    """Shows the progress of several phases that run at the same time, each in a forked process.

    Only the first phase that has not ended is shown.
    """

    def __init__(self, progress: Progress) -> None:
        """`progress` shows the phases; create this object before the processes are forked."""
        self._progress = progress
        self._ended = mmap(-1, 1)  # the number of phases that have ended, shared by all processes

    def phase(self, number: int, name: str, total: int = 0) -> Progress:
        """Return the Progress to which the process of the phase `name` reports.

        `number` is the position of the phase; the first phase has the number 0. The phase has
        `total` parts (0: unknown).
        """
        return _PhaseInTurn(self._progress, self._ended, number, name, total)

    def end_phase(self) -> None:
        """Record that the phase that was shown has ended; show the next one."""
        self._ended[0] += 1


class _PhaseInTurn:
    """Forwards the progress of one phase, but only after `number` earlier phases have ended."""

    def __init__(self, progress: Progress, ended: mmap, number: int, name: str, total: int) -> None:
        self._progress, self._ended = progress, ended
        self._number, self._name, self._total = number, name, total
        self._has_begun = False

    def begin(self, phase: str, total: int) -> None:
        """Do nothing: `reach` begins the phase after all earlier phases have ended."""

    def reach(self, done: int, now_s: float) -> None:
        if self._ended[0] != self._number:
            return
        if not self._has_begun:
            self._has_begun = True
            self._progress.begin(self._name, self._total)
        self._progress.reach(done, now_s)
