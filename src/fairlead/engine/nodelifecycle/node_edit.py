"""NodeEdit: one write to a Node, computed from the newest version when it is sent.

An edit that would have no effect produces no write. A merge patch replaces the whole taint list.
The patch contains the resourceVersion of the Node from which it was computed. So the server refuses
the patch if another client has changed the node since.

NoSchedule taints mirror node conditions (memory pressure, ...) and the cordon. If another client
adds or removes one of these taints, the controller reverts the change. Another part of the
controller adds and removes NoExecute taints (`eviction/no_execute_taint_mode.py`).

upstream: pkg/controller/controller_utils.go:AddOrUpdateTaintOnNode, RemoveTaintOffNode,
pkg/util/taints/taints.go:AddOrUpdateTaint, DeleteTaint,
pkg/controller/nodelifecycle/node_lifecycle_controller.go:reconcileNodeLabels,
doNoScheduleTaintingPass
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from fairlead.api.nodes.readiness import FALSE, READY, TRUE, UNKNOWN, ready_condition
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE
from fairlead.api.objects import Node, NodeCondition, Taint
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    PatchObject,
    PatchStatus,
    node_ref,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.well_known import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    NOT_READY,
    PID_PRESSURE,
    UNREACHABLE,
    UNSCHEDULABLE,
)

KEY_OF_CONDITION: Final = {
    (READY, FALSE): NOT_READY,
    (READY, UNKNOWN): UNREACHABLE,
    (MEMORY_PRESSURE, TRUE): "node.kubernetes.io/memory-pressure",
    (DISK_PRESSURE, TRUE): "node.kubernetes.io/disk-pressure",
    (PID_PRESSURE, TRUE): "node.kubernetes.io/pid-pressure",
    (NETWORK_UNAVAILABLE, TRUE): "node.kubernetes.io/network-unavailable",
}
KEYS: Final = frozenset({*KEY_OF_CONDITION.values(), UNSCHEDULABLE})


def desired_keys(node: Node) -> tuple[str, ...]:
    """Return the keys of the NoSchedule taints that the conditions and cordon of `node` require."""
    keys = [
        key
        for one in node.status.conditions
        if (key := KEY_OF_CONDITION.get((one.type, one.status)))
    ]
    return (*keys, UNSCHEDULABLE) if node.spec.unschedulable else tuple(keys)


def missing_keys(node: Node) -> tuple[str, ...]:
    """Return the keys in `desired_keys(node)` for which `node` has no NoSchedule taint."""
    present = present_keys(node)
    return tuple(key for key in desired_keys(node) if key not in present)


def stale_keys(node: Node) -> tuple[str, ...]:
    """Return the keys of the NoSchedule taints on `node` that are no longer required.

    Only taints that mirror a condition or a cordon are included (KEYS).
    """
    desired = desired_keys(node)
    return tuple(key for key in present_keys(node) if key not in desired)


def present_keys(node: Node) -> dict[str, None]:
    """Return the keys of the NoSchedule taints on `node` that mirror a condition or a cordon."""
    return {t.key: None for t in node.spec.taints if t.effect == NO_SCHEDULE and t.key in KEYS}


class TaintNoExecute(Struct, frozen=True):
    """Adds the NoExecute taint `key`, or updates the time of an existing taint.

    `is_rate_limited` tells whether the edit used a token of the zone's rate limiter.
    """

    key: str
    is_rate_limited: bool

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the command that makes this edit to `node`; None if `node` needs no edit."""
        return _write_taints(node, with_taints(node.spec.taints, (self.key,), NO_EXECUTE, now))


class UntaintNoExecute(Struct, frozen=True):
    """Removes the NoExecute taint `key`."""

    key: str

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the command that makes this edit to `node`; None if `node` needs no edit."""
        return _write_taints(node, without_taints(node.spec.taints, (self.key,), NO_EXECUTE))


class AddNoSchedule(Struct, frozen=True):
    """Adds the required NoSchedule taints that the node lacks (`missing_keys`)."""

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the command that makes this edit to `node`; None if `node` needs no edit."""
        keys = missing_keys(node)
        return _write_taints(node, with_taints(node.spec.taints, keys, NO_SCHEDULE, now))


class RemoveNoSchedule(Struct, frozen=True):
    """Removes the NoSchedule taints that are no longer required (`stale_keys`)."""

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the command that makes this edit to `node`; None if `node` needs no edit."""
        return _write_taints(node, without_taints(node.spec.taints, stale_keys(node), NO_SCHEDULE))


class CopyLabels(Struct, frozen=True):
    """Copies labels to other names; `copies` are pairs (source, copy) of label names."""

    copies: tuple[tuple[str, str], ...]

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the command that makes this edit to `node`; None if `node` needs no edit."""
        labels = stale_labels(node, self.copies)
        return PatchObject(node_ref(node), {"metadata": {"labels": labels}}) if labels else None


class MarkUnknown(Struct, frozen=True):
    """Writes the Unknown `conditions` if the Ready condition of the node is still equal to `ready`.

    `ready` is the Ready condition in the pass that found the heartbeat overdue, or None if the node
    had no Ready condition then. `health` replaces the node's saved health once the write has
    succeeded.
    """

    conditions: tuple[Condition, ...]
    ready: NodeCondition | None
    health: NodeHealth

    def command(self, node: Node, now: Instant) -> Command | None:
        """Return the write for `node`; None if its Ready condition differs from `self.ready`."""
        if ready_condition(node) != self.ready:
            return None
        version = node.metadata.resource_version
        return PatchStatus(node_ref(node), conditions=self.conditions, resource_version=version)


NodeEdit = (
    TaintNoExecute | UntaintNoExecute | AddNoSchedule | RemoveNoSchedule | CopyLabels | MarkUnknown
)


def has_no_execute(node: Node, key: str) -> bool:
    """Return whether `node` has a NoExecute taint with the key `key`."""
    return any(_is(taint, key, NO_EXECUTE) for taint in node.spec.taints)


def with_taints(
    taints: tuple[Taint, ...], keys: Iterable[str], effect: str, now: Instant
) -> tuple[Taint, ...]:
    """Return `taints` plus one taint for each of `keys`, with the effect `effect`.

    The time of the new taints is `now`. An existing taint with the same key and effect is replaced
    in place.
    """
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
    """Return `taints` without the taints that have one of `keys` and the effect `effect`."""
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


def stale_labels(node: Node, copies: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the labels that must be written to make each copy on `node` equal to its source.

    `copies` are pairs (source, copy) of label names. The result maps the name of each missing or
    different copy to the value of its source. A copy whose source is missing is left out.
    """
    labels = node.metadata.labels
    return {
        copy: labels[source]
        for source, copy in copies
        if source in labels and labels.get(copy) != labels[source]
    }
