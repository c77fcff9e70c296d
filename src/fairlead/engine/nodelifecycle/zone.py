"""Zones: which one a node belongs to, and how bad things are there.

upstream: component-helpers/node/topology/helpers.go:GetZoneKey,
pkg/controller/nodelifecycle/node_lifecycle_controller.go:ComputeZoneState, ReducedQPSFunc
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from fairlead.api.objects import Node
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig

KEY_SEPARATOR: Final = ":\x00:"
# Up to so many unready nodes a zone with a ready one is Normal, whatever their share.
UNREADY_TOLERATED: Final = 2


class ZoneState(StrEnum):
    """How much of a zone is disrupted; INITIAL before its nodes were counted."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


@dataclass(frozen=True, slots=True)
class ZoneCount:
    """The nodes of a zone that count for disruption."""

    size: int = 0
    unready: int = 0


def zone_key(node: Node, config: NodeLifecycleConfig) -> str:
    """Region and zone as one text; "" for a node that has neither."""
    labels, profile = node.metadata.labels, config.profile
    region = _first_label(labels, profile.region_labels)
    zone = _first_label(labels, profile.zone_labels)
    return f"{region}{KEY_SEPARATOR}{zone}" if region or zone else ""


def _first_label(labels: dict[str, str], keys: tuple[str, ...]) -> str:
    """The value of the first of `keys` that is there, even an empty one."""
    return next((labels[key] for key in keys if key in labels), "")


def zone_state(count: ZoneCount, config: NodeLifecycleConfig) -> ZoneState:
    """The state of a zone with at least one node that counts."""
    if count.unready == count.size:
        return ZoneState.FULL_DISRUPTION
    share = np.float32(count.unready) / np.float32(count.size)
    threshold = np.float32(config.unhealthy_zone_threshold)
    if count.unready > UNREADY_TOLERATED and share >= threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def eviction_rate(state: ZoneState, count: ZoneCount, config: NodeLifecycleConfig) -> float:
    """Nodes a second that may be emptied in such a zone; 0 stops it.

    A single zone that is fully dark is emptied at the normal rate.
    """
    if state is not ZoneState.PARTIAL_DISRUPTION:
        return config.node_eviction_rate
    if count.size > config.large_cluster_size_threshold:
        return config.secondary_node_eviction_rate
    return 0.0
