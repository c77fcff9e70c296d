"""Interest: the stimuli that a controller needs.

Most stimuli concern only a few controllers. A controller states its interest as classes of objects
and of commands:

    interest = Interest(changed=(Pod, Node), deleted=(Pod,), succeeded=(), failed=(PatchStatus,))

A class of commands may be limited to some kinds of objects:

    interest = Interest(succeeded=(WritesTo(PatchStatus, ("PodDisruptionBudget",)),))

The engine skips the controllers whose `handle` would ignore a stimulus.
"""

from __future__ import annotations

from typing import Final, get_args

from msgspec import Struct

from fairlead.engine.core.command import Command, CreateObject, RecordEvent
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ReadinessChanged,
    Stimulus,
)

# The key by which the engine finds the controllers that need a stimulus. The first part is the
# class of the stimulus. The second part is the class of its object or command, or NoneType. The
# third part is the kind of the object that its command writes, or "".
Topic = tuple[type, type, str]


class WritesTo(Struct, frozen=True):
    """Selects commands of the class `command` that write an object whose kind is in `kinds`.

    The kinds are spelled as in `ObjectRef.kind`.
    """

    command: type
    kinds: tuple[str, ...]


Classes = tuple[type, ...]
Commands = tuple[type | WritesTo, ...]


class Interest(Struct, frozen=True, kw_only=True):
    """The classes of the objects and commands that a controller needs.

    None means all classes. `changed` and `deleted` are classes of objects. `succeeded` and `failed`
    are classes of commands. Every controller gets all stimuli that these fields do not concern,
    such as ObjectsLoaded. `succeeded` matters only for the controller's own commands: the engine
    may withhold the CommandSucceeded of another issuer's command. If `readiness` is False, the
    controller gets no ReadinessChanged. The pods that the controller has stored may then have an
    outdated readiness and outdated container statuses. If `keeps_deadline` is set, `next_deadline`
    changes only in `handle` and `handle_deadline`. The engine then calls `next_deadline` only after
    one of these two methods.
    """

    changed: Classes | None = None
    deleted: Classes | None = None
    succeeded: Commands | None = None
    failed: Commands | None = None
    readiness: bool = True
    keeps_deadline: bool = True

    @property
    def is_selective(self) -> bool:
        """Whether there are stimuli that the controller does not need."""
        classes = (self.changed, self.deleted, self.succeeded, self.failed)
        return classes != (None,) * 4 or not self.readiness

    def includes(self, topic: Topic) -> bool:
        """Return whether the controller needs stimuli of `topic`."""
        stimulus, subject, kind = topic
        if stimulus is ReadinessChanged and not self.readiness:
            return False
        classes = self._classes(stimulus)
        return classes is None or any(_includes(one, subject, kind) for one in classes)

    def depends_on_kind(self, stimulus: type, command: type) -> bool:
        """Return whether the controller needs outcomes of `command` only for some kinds of objects.

        `command` is the class of the command. `stimulus` is the class of the outcome:
        CommandSucceeded or CommandFailed.
        """
        classes = self._classes(stimulus) or ()
        return any(
            isinstance(one, WritesTo) and issubclass(command, one.command) for one in classes
        )

    def _classes(self, stimulus: type) -> Commands | None:
        if stimulus in (ObjectChanged, ReadinessChanged):
            return self.changed
        if stimulus is ObjectDeleted:
            return self.deleted
        if stimulus is CommandSucceeded:
            return self.succeeded
        return self.failed if stimulus is CommandFailed else None


def _includes(one: type | WritesTo, subject: type, kind: str) -> bool:
    if isinstance(one, WritesTo):
        return issubclass(subject, one.command) and kind in one.kinds
    return issubclass(subject, one)


# All commands except RecordEvent, whose outcome no controller needs.
REQUESTS: Final[Classes] = tuple(one for one in get_args(Command) if one is not RecordEvent)
EVERYTHING: Final = Interest(keeps_deadline=False)


def topic_of(stimulus: Stimulus) -> Topic:
    """Return the topic of `stimulus`; stimuli of one topic go to the same controllers.

    A topic has three parts. The first is the class of the stimulus. The second is the class of the
    stimulus's object or command. The third is the kind of the object that the command writes, or ""
    if the stimulus has no command.
    """
    if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
        return type(stimulus), type(stimulus.object), ""
    if type(stimulus) is ObjectDeleted:
        return ObjectDeleted, type(stimulus.object), ""
    if type(stimulus) is CommandSucceeded or type(stimulus) is CommandFailed:
        return type(stimulus), type(stimulus.command), _kind_written_by(stimulus.command)
    return type(stimulus), type(None), ""


def _kind_written_by(command: Command) -> str:
    if type(command) is CreateObject:
        return str(command.manifest.get("kind", ""))
    target = getattr(command, "target", None)
    return "" if target is None else str(target.kind)
