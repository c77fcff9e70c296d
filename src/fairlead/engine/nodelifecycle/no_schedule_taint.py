"""NoSchedule taints that mirror node conditions (memory pressure, unschedulable, ...).

The set of these taints is reconciled to match the conditions, whatever added or removed one. Other
effects of the same keys are not touched: NoExecute taints are added elsewhere or by users.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:doNoScheduleTaintingPass
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node
from fairlead.api.taint import NO_SCHEDULE
from fairlead.engine.nodelifecycle.well_known import (
    DISK_PRESSURE,
    FALSE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    NOT_READY,
    PID_PRESSURE,
    READY,
    TRUE,
    UNKNOWN,
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
    """Keys of the NoSchedule taints that the conditions of `node` require."""
    keys = [
        key
        for one in node.status.conditions
        if (key := KEY_OF_CONDITION.get((one.type, one.status)))
    ]
    return (*keys, UNSCHEDULABLE) if node.spec.unschedulable else tuple(keys)


def missing_keys(node: Node) -> tuple[str, ...]:
    """Required keys that `node` has no taint for."""
    present = _present_keys(node)
    return tuple(key for key in desired_keys(node) if key not in present)


def stale_keys(node: Node) -> tuple[str, ...]:
    """Keys of condition taints on `node` that no condition requires any more."""
    desired = desired_keys(node)
    return tuple(key for key in _present_keys(node) if key not in desired)


def _present_keys(node: Node) -> list[str]:
    return [t.key for t in node.spec.taints if t.effect == NO_SCHEDULE and t.key in KEYS]
