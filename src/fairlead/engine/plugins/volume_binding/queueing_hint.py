"""QueueingHints of VolumeBinding.

upstream: volume_binding.go: isSchedulableAfter…
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from fairlead.api.pods.volumes import all_claims
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.plugins.volume_binding.class_capacity import volume_limit
from fairlead.engine.plugins.volume_lookup.csi_node_columns import MIGRATED_PLUGINS
from fairlead.engine.state.pod_info import PodInfo

EVENTS: Final = frozenset(
    {
        EventKind.STORAGE_CLASS_ADD,
        EventKind.STORAGE_CLASS_UPDATE,
        EventKind.VOLUME_CLAIM_ADD,
        EventKind.VOLUME_CLAIM_UPDATE,
        EventKind.VOLUME_ADD,
        EventKind.VOLUME_UPDATE,
        EventKind.NODE_ADD,
        EventKind.NODE_LABEL,
        EventKind.CSI_NODE_ADD,
        EventKind.CSI_NODE_UPDATE,
        EventKind.CSI_DRIVER_UPDATE,
        EventKind.STORAGE_CAPACITY_ADD,
        EventKind.STORAGE_CAPACITY_UPDATE,
    }
)


def is_woken_by(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return True for any volume, new node, class or capacity, and for the pod's own claims."""
    match event.old, event.new:
        case _, PersistentVolumeClaim() as claim:
            is_ours = claim.metadata.namespace == pod.namespace
            return is_ours and claim.metadata.name in all_claims(pod.pod)
        case StorageClass() as old, StorageClass() as new:
            return old.allowed_topologies != new.allowed_topologies
        case CSINode() as old, CSINode() as new:
            before, after = old.metadata.annotations, new.metadata.annotations
            return before.get(MIGRATED_PLUGINS) != after.get(MIGRATED_PLUGINS)
        case CSIStorageCapacity() as old, CSIStorageCapacity() as new:
            limit = volume_limit(new)
            return limit is not None and limit > (volume_limit(old) or 0)
        case CSIDriver() as old, CSIDriver() as new:
            return _stops_counting(old, new) and _has_inline(pod, new.metadata.name)
        case _:
            return True


def _stops_counting(old: CSIDriver, new: CSIDriver) -> bool:
    return old.spec.storage_capacity and not new.spec.storage_capacity


def _has_inline(pod: PodInfo, driver: str) -> bool:
    """Return True if the pod has an inline volume of `driver`.

    Upstream checks inline volumes only, although capacity matters to claims.
    """
    return any(one.csi is not None and one.csi.driver == driver for one in pod.pod.spec.volumes)
