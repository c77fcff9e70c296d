"""ReactiveController: base of controllers that only react to changes and have no deadlines.

These controllers belong to a served cluster: they read what they need directly from its storage,
and write by commands like any other controller.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.objects import ApiObject, Unstructured
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus


class ReactiveController:
    """A controller without deadlines."""

    def next_deadline(self) -> Instant | None:
        """Return None: only a stimulus can cause work."""
        return None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return no commands, because the controller has no deadlines."""
        return []


def changes(stimulus: Stimulus) -> Iterator[tuple[ApiObject, bool]]:
    """Yield the objects of `stimulus`, and for each whether it was deleted."""
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


def kind_name(one: ApiObject) -> str:
    """Return the kind of an object, with or without a typed view."""
    return one.kind if isinstance(one, Unstructured) else type(one).__name__
