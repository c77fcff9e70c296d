"""Notes about changed and deleted objects whose owner, a custom resource, may restore them.

An operator, such as the Prometheus operator, restores its StatefulSets and budgets when they differ
from its custom resource. Operators are not simulated, so a change of such an object lasts in the
simulation.

Pods are left out, because other notes state what replaces them. Nodes are left out, because no
controller restores their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.apiserver.kind import NODE, POD
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom

_NOTES_MAX: Final = 3


def ownership_notes(changed: Iterable[Manifest], deleted: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each object that a custom resource controls.

    `changed` are existing objects that the change writes. `deleted` are the objects that the change
    deletes. An object whose owner is deleted gets no note. After `_NOTES_MAX` notes, one note
    counts the remaining objects.
    """
    deleted = list(deleted)
    notes = [
        f"{owner} owns {one.title} and may {action}; its controller is not simulated."
        for objects, action in ((changed, "undo the change"), (deleted, "create it again"))
        for one in objects
        if (owner := _custom_owner(one)) and not any(map(one.is_controlled_by, deleted))
    ]
    shown = notes if len(notes) <= _NOTES_MAX + 1 else notes[:_NOTES_MAX]
    yield from shown
    if len(notes) > len(shown):
        yield (
            f"Custom resources own {len(notes) - len(shown):,} other changed or deleted objects, "
            "and their controllers, which may undo the change, are not simulated either."
        )


def _custom_owner(one: Manifest) -> str:
    """Return kind and name of the custom resource that controls `one`; "" if there is none."""
    owner = None if one.kind in (NODE, POD) or one.kind.is_custom else one.controller
    if owner is None or not is_custom(owner.api_version):
        return ""
    namespace = f"{one.ref.namespace}/" if one.ref.namespace else ""
    return f"{owner.kind} {namespace}{owner.name}"
