"""Interest: the stimuli that a controller needs.

Most stimuli concern a few controllers: the result of a RecordEvent concerns no controller, a
changed Lease only the kubelets and the node controllers. A controller states its interest as
classes of objects and of commands:

    interest = Interest(changed=(Pod, Node), deleted=(Pod,), succeeded=(), failed=(PatchStatus,))

The engine skips the controllers whose `handle` would ignore a stimulus. The order of the remaining
controllers stays the same, and so do all commands.
"""

from __future__ import annotations

from typing import Final, get_args

from msgspec import Struct

from fairlead.engine.core.command import Command, RecordEvent
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    Stimulus,
)

Classes = tuple[type, ...]
# The class of a stimulus and the class of its object or command, which is NoneType if it has none.
Topic = tuple[type, type]


class Interest(Struct, frozen=True, kw_only=True):
    """The classes of the objects and commands that a controller needs (None: all classes).

    Every controller receives all other stimuli, such as ObjectsLoaded. If `keeps_deadline` is set,
    the controller's `next_deadline` changes only in its `handle` and `handle_deadline`, so that the
    engine needs to call it only after these.
    """

    changed: Classes | None = None
    deleted: Classes | None = None
    succeeded: Classes | None = None
    failed: Classes | None = None
    keeps_deadline: bool = True

    @property
    def is_selective(self) -> bool:
        """Whether there are stimuli that the controller does not need."""
        return (self.changed, self.deleted, self.succeeded, self.failed) != (None,) * 4

    def includes(self, topic: Topic) -> bool:
        """Return whether the controller needs stimuli of `topic`."""
        stimulus, subject = topic
        classes: Classes | None = None
        if stimulus is ObjectChanged:
            classes = self.changed
        elif stimulus is ObjectDeleted:
            classes = self.deleted
        elif stimulus is CommandSucceeded:
            classes = self.succeeded
        elif stimulus is CommandFailed:
            classes = self.failed
        return classes is None or issubclass(subject, classes)


# All commands but events, whose outcomes concern nobody.
REQUESTS: Final[Classes] = tuple(one for one in get_args(Command) if one is not RecordEvent)
EVERYTHING: Final = Interest(keeps_deadline=False)


def topic_of(stimulus: Stimulus) -> Topic:
    """Return the class of `stimulus` and the class of its object or command (NoneType if none)."""
    if isinstance(stimulus, ObjectChanged):
        return ObjectChanged, type(stimulus.object)
    if isinstance(stimulus, CommandSucceeded):
        return CommandSucceeded, type(stimulus.command)
    if isinstance(stimulus, ObjectDeleted):
        return ObjectDeleted, type(stimulus.object)
    if isinstance(stimulus, CommandFailed):
        return CommandFailed, type(stimulus.command)
    return type(stimulus), type(None)
