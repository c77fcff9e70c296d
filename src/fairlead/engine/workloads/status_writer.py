"""Writing status: one request at a time for each object, and none that says nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.json import Json
from fairlead.engine.core.command import Command, ObjectRef, PatchStatus


def status_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """The merge patch that makes `after` of `before`, field by field."""
    patch: Json = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if known != value:
            is_deeper = isinstance(known, dict) and isinstance(value, dict)
            patch[key] = status_patch(known or {}, value) if is_deeper else value
    return patch


@dataclass(slots=True)
class StatusWriter:
    """The writes under way, by the object they are for.

    One that came to nothing is not tried again before the object has changed: somebody who judges
    it has kept it as it was.
    """

    _pending: dict[ObjectRef, Json] = field(default_factory=dict)
    _taken: dict[ObjectRef, Json] = field(default_factory=dict)  # since the object changed last
    _refused: dict[ObjectRef, int] = field(default_factory=dict)  # how often in a row

    def write(
        self, target: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> list[Command]:
        """Let the status of `target`, seen as `before`, become `after`.

        While a write is under way nothing is sent; who is told of its outcome asks again.
        """
        patch = status_patch(before, after)
        if not patch or target in self._pending or self._taken.get(target) == patch:
            return []
        self._pending[target] = patch
        return [PatchStatus(target, patch)]

    def is_pending(self, target: ObjectRef) -> bool:
        """Whether a write is under way."""
        return target in self._pending

    def see(self, target: ObjectRef) -> None:
        """Take note that the object has changed."""
        self._taken.pop(target, None)

    def answered(self, target: ObjectRef) -> bool:
        """Take note that a write is done; whether it was one of these."""
        patch = self._pending.pop(target, None)
        if patch is None:
            return False
        self._refused.pop(target, None)
        self._taken[target] = patch
        return True

    def refused(self, target: ObjectRef) -> int:
        """Take note that a write was refused; how often in a row, 0 if it was none of these."""
        if self._pending.pop(target, None) is None:
            return 0
        self._refused[target] = self._refused.get(target, 0) + 1
        return self._refused[target]

    def forget(self, target: ObjectRef) -> None:
        """The object is gone."""
        for known in (self._pending, self._taken, self._refused):
            known.pop(target, None)
