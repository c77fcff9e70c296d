"""NodeEdit: one write to a Node, worked out from the version that is known when it is sent.

What an edit asks for may be true by then, so a taint that is there already, or a label that was
corrected by hand, is no write at all. Taints are a list, and a merge patch replaces lists: such a
patch is meant for one version only.

upstream: pkg/controller/controller_utils.go:AddOrUpdateTaintOnNode, RemoveTaintOffNode,
pkg/util/taints/taints.go:AddOrUpdateTaint, DeleteTaint
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fairlead.api.objects import Node, NodeCondition, Taint
from fairlead.api.taint import NO_EXECUTE, NO_SCHEDULE
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Command, Condition, ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.no_schedule import missing_keys, stale_keys
from fairlead.engine.nodelifecycle.node_health import NodeHealth
from fairlead.engine.nodelifecycle.node_label import stale_labels
from fairlead.engine.nodelifecycle.well_known import ready_condition


@dataclass(frozen=True, slots=True)
class TaintNoExecute:
    """Add the NoExecute taint `key`, or give the one that is there a new time.

    `is_turn`: it was the node's turn in its zone, and a token was spent.
    """

    key: str
    is_turn: bool

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        return _write_taints(node, with_taints(node.spec.taints, (self.key,), NO_EXECUTE, now))


@dataclass(frozen=True, slots=True)
class UntaintNoExecute:
    """Remove the NoExecute taint `key`."""

    key: str

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        return _write_taints(node, without_taints(node.spec.taints, (self.key,), NO_EXECUTE))


@dataclass(frozen=True, slots=True)
class AddNoSchedule:
    """Add the NoSchedule taints that the node's state asks for."""

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        keys = missing_keys(node)
        return _write_taints(node, with_taints(node.spec.taints, keys, NO_SCHEDULE, now))


@dataclass(frozen=True, slots=True)
class RemoveNoSchedule:
    """Remove the NoSchedule taints that nothing asks for any more."""

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        return _write_taints(node, without_taints(node.spec.taints, stale_keys(node), NO_SCHEDULE))


@dataclass(frozen=True, slots=True)
class CopyLabels:
    """Give the node the copies of labels that go by two names, by (source, copy)."""

    copies: tuple[tuple[str, str], ...]

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        labels = stale_labels(node, self.copies)
        return PatchObject(node_ref(node), {"metadata": {"labels": labels}}) if labels else None


@dataclass(frozen=True, slots=True)
class SilenceConditions:
    """Set `conditions` to Unknown, unless Ready is no longer what it was when that was decided.

    `ready` is what it was (None: absent), `health` what to remember of the node once it is done.
    """

    conditions: tuple[Condition, ...]
    ready: NodeCondition | None
    health: NodeHealth

    def command(self, node: Node, now: Instant) -> Command | None:
        """The write for this version of `node`."""
        if ready_condition(node) != self.ready:
            return None
        version = node.metadata.resource_version
        return PatchStatus(node_ref(node), conditions=self.conditions, resource_version=version)


NodeEdit = (
    TaintNoExecute
    | UntaintNoExecute
    | AddNoSchedule
    | RemoveNoSchedule
    | CopyLabels
    | SilenceConditions
)


def node_ref(node: Node) -> ObjectRef:
    """The identity of `node`."""
    meta = node.metadata
    return ObjectRef("Node", "", meta.name, meta.uid)


def has_no_execute(node: Node, key: str) -> bool:
    """Whether `node` has the NoExecute taint `key`."""
    return any(_is(taint, key, NO_EXECUTE) for taint in node.spec.taints)


def with_taints(
    taints: tuple[Taint, ...], keys: Iterable[str], effect: str, now: Instant
) -> tuple[Taint, ...]:
    """`taints` with one of each key and `effect`, new or in the place of the one that is there."""
    result = list(taints)
    for key in keys:
        added = Taint(key=key, effect=effect, time_added=format_timestamp(now))
        places = [i for i, taint in enumerate(result) if _is(taint, key, effect)]
        if places:
            result[places[0]] = added
        else:
            result.append(added)
    return tuple(result)


def without_taints(
    taints: tuple[Taint, ...], keys: Iterable[str], effect: str
) -> tuple[Taint, ...]:
    """`taints` without those of `keys` and `effect`."""
    gone = tuple(keys)
    return tuple(taint for taint in taints if taint.effect != effect or taint.key not in gone)


def _is(taint: Taint, key: str, effect: str) -> bool:
    return taint.key == key and taint.effect == effect


def _write_taints(node: Node, taints: tuple[Taint, ...]) -> Command | None:
    if taints == node.spec.taints:
        return None
    patch: dict[str, Any] = {"spec": {"taints": [_json(taint) for taint in taints] or None}}
    if node.metadata.resource_version:
        patch["metadata"] = {"resourceVersion": node.metadata.resource_version}
    return PatchObject(node_ref(node), patch)


def _json(taint: Taint) -> dict[str, str]:
    written = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    written["timeAdded"] = taint.time_added
    return {name: value for name, value in written.items() if value}


FindNode = Callable[[str], Node | None]
