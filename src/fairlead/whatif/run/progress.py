"""Progress: receives the progress of a run, for a progress bar."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the phases of the work and the progress within each phase."""

    def begin(self, phase: str, total: int) -> None:
        """Start `phase`, which has `total` parts (0: unknown)."""
        ...

    def reach(self, done: int, now_s: float) -> None:
        """Record that `done` parts are complete; `now_s` is virtual seconds since the start."""
        ...


class NoProgress:
    """Discards progress."""

    def begin(self, phase: str, total: int) -> None:
        """Do nothing."""

    def reach(self, done: int, now_s: float) -> None:
        """Do nothing."""
