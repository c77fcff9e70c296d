"""ReactiveController: base class of controllers that react to changes and repeat refused writes.

These controllers read objects directly from the storage, and write by commands like any other
controller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import ApiObject, Unstructured
from fairlead.engine.core.command import (
    ApplyStatus,
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue

RETRY_AFTER: Final[DurationNs] = seconds(1)
WRITES: Final = (ApplyStatus, CreateObject, DeleteObject, PatchObject, PatchStatus)
# Other refusals last until an object changes, and the controller receives that change.
_TRANSIENT: Final = (
    FailureReason.CONFLICT,
    FailureReason.TOO_MANY_REQUESTS,
    FailureReason.INTERNAL_ERROR,
)


class ReactiveController(ABC):
    """A controller that reacts to changes, and has deadlines only for retries of refused writes.

    A write is retried only if it failed with `Conflict`, `TooManyRequests` or `InternalError`. One
    second later, `reconcile` is called for the object of the write, and returns the writes that
    this object needs at that time. A subclass sets `interest.failed` to the classes of all commands
    with which it writes.
    """

    def __init__(self) -> None:
        self._retries: TimerQueue[ObjectRef] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands with which the controller reacts to the changes in `stimulus`.

        If `stimulus` reports a write of this controller that must be retried, schedule the retry.
        """
        if isinstance(stimulus, CommandFailed) and stimulus.reason in _TRANSIENT:
            command = stimulus.command
            if isinstance(command, WRITES) and self.is_own(command.target):
                self._retries.add(now + RETRY_AFTER, command.target)
        return self.react(changes(stimulus), now)

    def next_deadline(self) -> Instant | None:
        """Return the time of the next retry of a refused write; None if no retry is scheduled."""
        return self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Reconcile the targets of the refused writes whose retry is due at `now`."""
        targets = dict.fromkeys(self._retries.pop_due(now))
        return [command for target in targets for command in self.reconcile(target, now)]

    @abstractmethod
    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the commands for `changed`: pairs (object, whether it is deleted)."""

    @abstractmethod
    def is_own(self, target: ObjectRef) -> bool:
        """Return whether this controller retries a refused write to `target`."""

    @abstractmethod
    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the writes that `target` needs now; no writes if `target` is up to date."""


def changes(stimulus: Stimulus) -> Iterator[tuple[ApiObject, bool]]:
    """Yield (object, whether it was deleted) for each object in `stimulus`."""
    match stimulus:
        case ObjectChanged(one):
            yield one, False
        case ObjectDeleted(one):
            yield one, True
        case ObjectsLoaded(objects):
            for one in objects:
                yield one, False
        case _:
            pass


def kind_name(obj: ApiObject) -> str:
    """Return the name of the kind of `obj`, which may be a typed view or an Unstructured object."""
    return obj.kind if isinstance(obj, Unstructured) else type(obj).__name__
