"""Controller: the one shape that everything inside the engine has."""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import Stimulus


class Controller(Protocol):
    """Decides; never waits, never calls another controller, never knows its world.

    `handle` is told every stimulus once, in order. `next_deadline` is the instant at which the
    controller wants `handle_deadline` called (an instant in the past means "at once"); None means
    that only a stimulus can give it work.
    """

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """What to do about `stimulus`."""
        ...

    def next_deadline(self) -> Instant | None:
        """When to call `handle_deadline`."""
        ...

    def handle_deadline(self, now: Instant) -> list[Command]:
        """What to do because time has come; does one unit of work."""
        ...
