"""Controller: the interface of all components that act on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from fairlead.api.objects import Pod
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import Stimulus


class Controller(Protocol):
    """Turns stimuli into commands. A controller never waits and never calls another controller.

    `handle` receives every stimulus once, in order. If the class has an attribute `interest` (an
    Interest), `handle` receives only the stimuli that the interest includes. The engine may also
    leave out a CommandSucceeded whose `issuer` is set and differs from the controller's issuer.

    A controller that is also a `PodHandler` receives changed pods through `handle_pod` instead. If
    it is also a `ReadinessHandler`, changes of readiness come through `handle_readiness`.
    """

    @property
    def issuer(self) -> Issuer:
        """The component in whose name a world performs the controller's commands."""
        ...

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the controller's commands in response to `stimulus`."""
        ...

    def next_deadline(self) -> Instant | None:
        """Return the time at which to call `handle_deadline`; a time in the past means immediately.

        Returns None if the controller has no work until the next stimulus.
        """
        ...

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do one due unit of work, for example a scheduling cycle, and return its commands."""
        ...


class NoDeadlines:
    """The deadline methods of a Controller that acts only on stimuli."""

    __slots__ = ()

    def next_deadline(self) -> None:
        """Return None, because the controller has no deadlines."""

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return no commands."""
        return []


@runtime_checkable
class PodHandler(Protocol):
    """A Controller with a separate method for changed pods, the most frequent stimuli."""

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Do what `handle(ObjectChanged(pod), now)` does, and return the same commands."""
        ...


@runtime_checkable
class ReadinessHandler(Protocol):
    """A PodHandler with a separate method for changes of readiness."""

    def handle_readiness(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Do what `handle(ReadinessChanged(pod), now)` does, and return the same commands."""
        ...
