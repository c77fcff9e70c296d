"""Progress: how far a run has come, for whoever watches; it changes nothing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of phases of work and of how much of each is done."""

    def begin(self, phase: str, total: int) -> None:
        """`phase` starts; it has `total` parts (0: nobody knows how many)."""
        ...

    def reach(self, done: int, now_s: float) -> None:
        """`done` parts are done; virtual time stands at `now_s` seconds after the start."""
        ...


class NoProgress:
    """Nobody watches."""

    def begin(self, phase: str, total: int) -> None:
        """Nobody cares."""

    def reach(self, done: int, now_s: float) -> None:
        """Nobody cares."""
