"""The zone of a node, and the disruption state and eviction rate of a zone.

upstream: component-helpers/node/topology/helpers.go:GetZoneKey,
pkg/controller/nodelifecycle/node_lifecycle_controller.go:ComputeZoneState, ReducedQPSFunc
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig

KEY_SEPARATOR: Final = ":\x00:"
# A zone with a ready node and at most this many unready nodes is Normal, whatever their ratio.
UNREADY_TOLERATED: Final = 2


class ZoneState(StrEnum):
    """The disruption state of a zone; INITIAL before the zone's nodes are counted."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class ZoneCount(Struct, frozen=True):
    """The number of counted nodes of a zone, and how many of them are unready.

    The fields `excludes_labelled` and `excludes_masters` of VersionProfile determine which nodes
    are not counted.
    """

    size: int = 0
    unready: int = 0


def zone_key(node: Node, config: NodeLifecycleConfig) -> str:
    """Return the node's region and zone, joined; "" if the node has neither label."""
    labels, profile = node.metadata.labels, config.profile
    region = _first_label(labels, profile.region_labels)
    zone = _first_label(labels, profile.zone_labels)
    return f"{region}{KEY_SEPARATOR}{zone}" if region or zone else ""


def _first_label(labels: dict[str, str], keys: tuple[str, ...]) -> str:
    """Return the value of the first label in `keys` that is present, even if the value is empty."""
    for key in keys:
        if key in labels:
            return labels[key]
    return ""


def zone_state(count: ZoneCount, config: NodeLifecycleConfig) -> ZoneState:
    """Return the disruption state of a zone; `count.size` must be at least 1."""
    if count.unready == count.size:
        return ZoneState.FULL_DISRUPTION
    ratio = np.float32(count.unready) / np.float32(count.size)
    threshold = np.float32(config.unhealthy_zone_threshold)
    if count.unready > UNREADY_TOLERATED and ratio >= threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def eviction_rate(state: ZoneState, count: ZoneCount, config: NodeLifecycleConfig) -> float:
    """Return the rate, in nodes per second, at which unready nodes of the zone are processed.

    A node is processed by adding the NoExecute taint, which evicts its pods. In the older mode
    (`PodEvictionMode`), its pods are deleted instead.

    A fully disrupted zone has the normal rate, but if all zones are fully disrupted, `ZoneStates`
    stops evictions.
    """
    if state is not ZoneState.PARTIAL_DISRUPTION:
        return config.node_eviction_rate
    is_large = count.size > config.large_cluster_size_threshold
    return config.secondary_node_eviction_rate if is_large else 0.0
