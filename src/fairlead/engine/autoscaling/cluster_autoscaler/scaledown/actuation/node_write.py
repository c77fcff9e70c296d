"""NodeTaintWriter: taints and cordons nodes by patching the newest version of each node.

upstream: utils/taints/taints.go: AddTaints, CleanTaints
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.nodes.autoscaler_taint import DELETION_CANDIDATE, TO_BE_DELETED
from fairlead.api.objects import Node, Taint
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.taint import (
    deletion_candidate_taint,
    has_taint,
    to_be_deleted_taint,
)
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant


class NodeTaintWriter:
    """Taints and cordons nodes. Patches are appended to `commands`; deleted nodes are ignored."""

    def __init__(self, commands: list[Command], listers: Listers, *, cordon: bool) -> None:
        """`cordon` tells whether `mark_to_be_deleted` also cordons the node."""
        self._commands = commands
        self._listers = listers
        self._cordon = cordon

    def mark_to_be_deleted(self, name: str, now: Instant) -> None:
        """Add the deletion taint to node `name` if the node does not have this taint.

        The same write cordons the node if the argument `cordon` of `__init__` is True.
        """
        node = self._listers.nodes.get(name)
        if node is not None and not has_taint(node, TO_BE_DELETED):
            self._write(node, (*node.spec.taints, to_be_deleted_taint(now)), cordon=True)

    def clean_to_be_deleted(self, name: str) -> Node | None:
        """Revert `mark_to_be_deleted`. Return the changed node; None if nothing changed."""
        node = self._listers.nodes.get(name)
        if node is None or not has_taint(node, TO_BE_DELETED):
            return None
        return self._write(node, _without(node, TO_BE_DELETED), cordon=False)

    def mark_deletion_candidate(self, name: str, now: Instant) -> None:
        """Add the soft taint DeletionCandidate to node `name`, if the node does not have it."""
        node = self._listers.nodes.get(name)
        if node is not None and not has_taint(node, DELETION_CANDIDATE):
            self._write(node, (*node.spec.taints, deletion_candidate_taint(now)))

    def clean_deletion_candidate(self, name: str) -> Node | None:
        """Remove the soft taint DeletionCandidate.

        Return the changed node; None if nothing changed.
        """
        node = self._listers.nodes.get(name)
        if node is None or not has_taint(node, DELETION_CANDIDATE):
            return None
        return self._write(node, _without(node, DELETION_CANDIDATE))

    def _write(self, node: Node, taints: Iterable[Taint], *, cordon: bool | None = None) -> Node:
        after = replace(node.spec, taints=tuple(taints))
        patch: dict[str, Any] = {"taints": [as_json(taint) for taint in after.taints] or None}
        if cordon is not None and self._cordon:
            patch["unschedulable"] = True if cordon else None
            after = replace(after, unschedulable=cordon)
        ref = ObjectRef("Node", "", node.metadata.name, node.metadata.uid)
        self._commands.append(PatchObject(ref, {"spec": patch}))
        return replace(node, spec=after)


def _without(node: Node, key: str) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.key != key]
