"""ReactiveController: base of controllers that react to changes only and have no deadlines.

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
        """None: only a stimulus can cause work."""
        return None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return no commands, because the controller has no deadlines."""
        return []


def changes(stimulus: Stimulus) -> Iterator[tuple[ApiObject, bool]]:
    """Yield the objects of `stimulus`, each with whether it was deleted."""
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
    """Return the kind of an object, whether or not it has a typed view."""
    return one.kind if isinstance(one, Unstructured) else type(one).__name__
