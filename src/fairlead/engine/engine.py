"""Engine: stimulus in, commands out.

    state first: the one writer of beliefs takes the stimulus in;
    then every controller, in order, says what to do about it.

Deadlines go to the controller whose deadline it is, one unit of work at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fairlead.engine.core.command import Command
from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.state.cluster import Cluster

Found = TypeVar("Found")


class Engine:
    """Sans-IO; `handle` and `handle_deadline` are the only entrances."""

    def __init__(self, cluster: Cluster, controllers: Sequence[Controller]) -> None:
        """`controllers` in the order in which they are told; earlier ones win equal deadlines."""
        self.cluster = cluster
        self._controllers = tuple(controllers)

    def find(self, kind: type[Found]) -> Found:
        """The controller of that kind, for those who want to look at it.

        Raises LookupError where the engine has none.
        """
        for controller in self._controllers:
            if isinstance(controller, kind):
                return controller
        raise LookupError(kind.__name__)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """What to do about `stimulus`."""
        self.cluster.apply(stimulus)
        commands: list[Command] = []
        for controller in self._controllers:
            commands += controller.handle(stimulus, now)
        return commands

    def next_deadline(self) -> Instant | None:
        """When `handle_deadline` has work; an instant in the past means at once."""
        found: Instant | None = None
        for controller in self._controllers:
            due = controller.next_deadline()
            if due is not None and (found is None or due < found):
                found = due
        return found

    def handle_deadline(self, now: Instant) -> list[Command]:
        """One unit of work of the first controller that has any due."""
        for controller in self._controllers:
            due = controller.next_deadline()
            if due is not None and due <= now:
                return controller.handle_deadline(now)
        return []
