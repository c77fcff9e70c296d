"""StatusWriter: writes changed statuses, with at most one write in flight for each object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.engine.core.command import Command, ObjectRef, PatchStatus


def status_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """Return the merge patch that turns `before` into `after`, field by field."""
    patch: Json = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if known != value:
            is_deeper = isinstance(known, dict) and isinstance(value, dict)
            patch[key] = status_patch(known or {}, value) if is_deeper else value
    return patch


class StatusWriter(Struct):
    """Writes the statuses of objects; at most one write per object is in flight.

    A successful write is not repeated until the object changes, even if an admission policy
    reverted the write.
    """

    _pending: dict[ObjectRef, Json] = field(default_factory=dict)
    _taken: dict[ObjectRef, Json] = field(
        default_factory=dict
    )  # successful writes since the object changed
    _refused: dict[ObjectRef, int] = field(default_factory=dict)  # consecutive failures

    def write(
        self, target: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> list[Command]:
        """Return the write that turns the status `before` of `target` into `after`.

        Returns [] if the status does not change, or if the same write has succeeded since the last
        change of `target`. Also returns [] if a write to `target` is in flight. In this case, the
        caller must call `write` again after the outcome of the write in flight.
        """
        patch = status_patch(before, after)
        if not patch or target in self._pending or self._taken.get(target) == patch:
            return []
        self._pending[target] = patch
        return [PatchStatus(target, patch)]

    def is_pending(self, target: ObjectRef) -> bool:
        """Return whether a status write of `target` is in flight."""
        return target in self._pending

    def observe(self, target: ObjectRef) -> None:
        """Record that the object `target` has changed."""
        self._taken.pop(target, None)

    def write_succeeded(self, target: ObjectRef) -> bool:
        """Record that a write to `target` succeeded; return whether this writer had sent it."""
        patch = self._pending.pop(target, None)
        if patch is None:
            return False
        self._refused.pop(target, None)
        self._taken[target] = patch
        return True

    def refused(self, target: ObjectRef) -> int:
        """Record a refused write to `target`; return the number of consecutive refusals.

        Returns 0 if this StatusWriter did not send the write.
        """
        if self._pending.pop(target, None) is None:
            return 0
        self._refused[target] = self._refused.get(target, 0) + 1
        return self._refused[target]

    def forget(self, target: ObjectRef) -> None:
        """Drop all records about the deleted object `target`."""
        for known in (self._pending, self._taken, self._refused):
            known.pop(target, None)
