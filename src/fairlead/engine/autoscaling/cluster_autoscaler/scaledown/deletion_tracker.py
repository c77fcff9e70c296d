"""NodeDeletionTracker: deletions in progress, and the results of completed deletions.

upstream: core/scaledown/deletiontracker/nodedeletiontracker.go
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import Instant

_NEVER: Final[Instant] = -(1 << 62)


class DeleteResult(StrEnum):
    """The kind of result of a node's deletion, named as in upstream."""

    OK = "NodeDeleteOk"
    FAILED_TO_EVICT_PODS = "NodeDeleteErrorFailedToEvictPods"
    FAILED_TO_DELETE = "NodeDeleteErrorFailedToDelete"
    INTERNAL = "NodeDeleteErrorInternal"


class NodeDeleteResult(Struct, frozen=True):
    """The result of a node's deletion, with the error text if the deletion failed."""

    type: DeleteResult
    error: str = ""


class DeletionsInProgress(Struct, frozen=True):
    """The sorted names of the nodes that are being deleted, and their number in each group."""

    empty: Collection[str]
    drained: Collection[str]
    by_group: dict[str, int]

    def __contains__(self, name: object) -> bool:
        """Return whether the node `name` is being deleted."""
        return name in self.empty or name in self.drained


class NodeDeletionTracker:
    """Tracks the nodes that are being deleted, and the results of completed deletions."""

    def __init__(self) -> None:
        self._empty: dict[str, str] = {}
        self._drained: dict[str, str] = {}
        self._results: dict[str, NodeDeleteResult] = {}
        self._taken_at: Instant = _NEVER

    def start(self, group: str, name: str, *, drain: bool) -> None:
        """Record that the deletion of the node `name` in `group` has started.

        `drain` is set if the node has pods to evict.
        """
        (self._drained if drain else self._empty)[name] = group

    def end(self, name: str, result: NodeDeleteResult, now: Instant) -> None:
        """Record the result of the deletion of the node `name`."""
        self._empty.pop(name, None)
        self._drained.pop(name, None)
        if now > self._taken_at:
            self._results[name] = result

    def in_progress(self) -> DeletionsInProgress:
        """Return the deletions that are in progress."""
        by_group: dict[str, int] = {}
        for group in (*self._empty.values(), *self._drained.values()):
            by_group[group] = by_group.get(group, 0) + 1
        return DeletionsInProgress(
            tuple(sorted(self._empty)), tuple(sorted(self._drained)), by_group
        )

    def take_results(self, now: Instant) -> dict[str, NodeDeleteResult]:
        """Return the results since the last call, by node name, and clear them.

        If a deletion ends at the instant of a call, but after the call, its result is dropped.
        upstream: nodedeletiontracker.go: ClearResultsNotNewerThan
        """
        found, self._results, self._taken_at = self._results, {}, now
        return found
