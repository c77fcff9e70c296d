"""Writing status: one request at a time for each object, and none that says nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.core.command import Command, ObjectRef, PatchStatus

Json = dict[str, Any]


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
    """The writes under way, by the object they are for."""

    _pending: dict[ObjectRef, None] = field(default_factory=dict)

    def write(
        self, target: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> list[Command]:
        """Let the status of `target`, seen as `before`, become `after`.

        While a write is under way nothing is sent; who is told of its outcome asks again.
        """
        patch = status_patch(before, after)
        if not patch or target in self._pending:
            return []
        self._pending[target] = None
        return [PatchStatus(target, patch)]

    def is_pending(self, target: ObjectRef) -> bool:
        """Whether a write is under way."""
        return target in self._pending

    def answered(self, target: ObjectRef) -> bool:
        """Take note that a write has come to its end, good or bad; whether it was one of these."""
        if target not in self._pending:
            return False
        del self._pending[target]
        return True
