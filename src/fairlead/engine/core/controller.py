"""Controller: the interface of everything that acts on the cluster."""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import Stimulus


class Controller(Protocol):
    """Turns stimuli into commands. Never waits, never calls another controller.

    `handle` receives every stimulus once, in order. `next_deadline` is the instant at which
    `handle_deadline` should be called (an instant in the past means at once); None means that only
    a stimulus can cause work.
    """

    @property
    def issuer(self) -> Issuer:
        """The component in whose name its commands are performed."""
        ...

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands that follow from `stimulus`."""
        ...

    def next_deadline(self) -> Instant | None:
        """Return when to call `handle_deadline`."""
        ...

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do one unit of work that is due; return the resulting commands."""
        ...
