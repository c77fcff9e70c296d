"""Controller: the interface of everything that acts on the cluster."""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import Stimulus


class Controller(Protocol):
    """Turns stimuli into commands. Never waits, never calls another controller.

    `handle` receives every stimulus once, in order. If the class has an attribute `interest` (an
    Interest), it receives only the stimuli that this includes. `next_deadline` is the instant at
    which to call `handle_deadline` (immediately, if it is in the past); None means that the
    controller has nothing to do until the next stimulus.
    """

    @property
    def issuer(self) -> Issuer:
        """The component as which a world performs the controller's commands."""
        ...

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands that follow from `stimulus`."""
        ...

    def next_deadline(self) -> Instant | None:
        """Return when to call `handle_deadline`.

        Returns None if there is nothing to do until the next stimulus.
        """
        ...

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do one unit of work that is due; return the resulting commands."""
        ...
