"""NodeWrites: frequent writes to nodes, which change a node's view now and its JSON value later.

NodeWrites performs the writes that are made when a node fails or returns: patches of annotations,
patches of taints, and writes of conditions. For example, one annotation stops the kubelet. The
store performs all other writes. The store also performs writes that could fail or could change
nothing, and writes that change only heartbeat times (see `SimulatedWorld.last_change`). Admission
does not run, because no admission plugin of a simulation handles the update of a node.
`ViewedObjects.find` lists further cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Node, NodeCondition, NodeSpec, NodeStatus
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.preparation import prepared_for_update
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.validation.core.node import check_taints
from fairlead.engine.core.command import Condition, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.worlds.simulation.pod_status_write import StatusWrite
from fairlead.worlds.simulation.viewed_object import ViewedObjects

_STRATEGY: Final = SIMULATION.strategy(NODE)
_NO_CONDITION: Final = NodeCondition(type="", status="")


class _Patch(msgspec.Struct, frozen=True, gc=False):
    """A write that merges `patch` into a node."""

    patch: Mapping[str, Any]

    def applied_to(self, node: Json, /) -> Json:
        return prepared_for_update(NODE, _STRATEGY, node, merge_patch(node, self.patch))


class NodeWrites:
    """Performs the writes to nodes that the module's docstring describes."""

    def __init__(self, nodes: ViewedObjects[Node]) -> None:
        self._nodes = nodes

    def patch(self, command: PatchObject) -> Node | None:
        """Perform a patch of a node's taints or annotations; return the new view of the node.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        stored = None if command.subresource else self._nodes.find(command.target)
        if stored is None:
            return None
        before = stored.view
        meta, spec = self._nodes.next_metadata(before.metadata), before.spec
        match command.patch:
            case {
                "spec": {"taints": taints, **other_fields},
                "metadata": {"resourceVersion": version, **other_metadata},
                **other_parts,
            } if not (other_fields or other_metadata or other_parts):
                made = _next_spec(spec, taints)
                if made is None or version != before.metadata.resource_version:
                    return None
                spec = made
            case {"metadata": {"annotations": changes, **other_metadata}, **other_parts} if not (
                other_metadata or other_parts
            ):
                annotations = _next_annotations(before.metadata.annotations, changes)
                if annotations is None:
                    return None
                force_setattr(meta, "annotations", annotations)
            case _:
                return None
        view = Node(metadata=meta, spec=spec, status=before.status)
        return view if self._nodes.replace(stored, _Patch(command.patch), view) else None

    def patch_status(self, command: PatchStatus, now: Instant) -> Node | None:
        """Write conditions of a node and return the new view of the node.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        stored = None if command.fields else self._nodes.find(command.target)
        if stored is None:
            return None
        before, timestamp = stored.view, format_timestamp(now)
        if command.resource_version not in ("", before.metadata.resource_version):
            return None
        conditions = _next_conditions(before.status.conditions, command.conditions, timestamp)
        if conditions is None:
            return None
        status: NodeStatus = before.status.__copy__()  # type: ignore[attr-defined] # msgspec's stubs
        force_setattr(status, "conditions", conditions)
        meta = self._nodes.next_metadata(before.metadata)
        view = Node(metadata=meta, spec=before.spec, status=status)
        write = StatusWrite(command.fields, command.conditions, timestamp)
        return view if self._nodes.replace(stored, write, view) else None


def _next_spec(before: NodeSpec, taints: Any) -> NodeSpec | None:
    """Return the view of the spec with `taints`, a JSON value; None removes all taints.

    Returns None if `taints` are invalid or the same as in `before`.
    """
    try:
        written = decode_as(NodeSpec, {"taints": taints or ()}).taints
    except DecodeError:
        return None
    if written == before.taints or any(check_taints(written, "spec.taints")):
        return None
    spec: NodeSpec = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(spec, "taints", written)
    return spec


def _next_annotations(before: Mapping[str, str], changes: Any) -> Mapping[str, str] | None:
    """Return the annotations `before` with `changes`, a merge patch.

    Returns None if nothing changes, or if a value is not a string.
    """
    if not isinstance(changes, dict):
        return None
    annotations: dict[str, str] = merge_patch(before, changes)
    if annotations == before or not all(type(one) is str for one in annotations.values()):
        return None
    return annotations


def _next_conditions(
    before: tuple[NodeCondition, ...], changes: tuple[Condition, ...], timestamp: str
) -> tuple[NodeCondition, ...] | None:
    """Return the conditions `before` with `changes` applied.

    Returns None if a change has no status, if nothing changes except for heartbeat times, or if
    `before` has two conditions of the same type.
    """
    # The same rule for JSON values: apiserver/condition.py: with_conditions
    merged = {one.type: one for one in before}
    if len(merged) < len(before):
        return None
    is_changed = False
    for change in changes:
        if not change.status:
            return None
        old = merged.get(change.type, _NO_CONDITION)
        is_same = old.status == change.status
        if not is_same or (old.reason, old.message) != (change.reason, change.message):
            is_changed = True
        merged[change.type] = NodeCondition(
            type=change.type,
            status=change.status,
            reason=change.reason,
            message=change.message,
            last_transition_time=old.last_transition_time if is_same else timestamp,
            last_heartbeat_time=change.last_heartbeat_time or old.last_heartbeat_time,
        )
    return tuple(merged.values()) if is_changed else None
