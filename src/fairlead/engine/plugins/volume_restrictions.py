"""VolumeRestrictions: one pod per ReadWriteOncePod claim, one writer per node for some disks.

PreFilter counts the pod's ReadWriteOncePod claims that other pods use. Filter rejects every node
while this count is above 0. When a dry run removes another pod, the claims of the removed pod are
subtracted from the count, because preemption can make these claims available.
upstream: plugins/volumerestrictions/volume_restrictions.go
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.api.objects import PersistentVolumeClaim, Volume
from fairlead.api.pods.volumes import is_exclusive, named_claims
from fairlead.engine.core.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.framework.preemption.removal_effect import (
    RemovalEffect,
    has_volumes,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup, claim_not_found
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape
from fairlead.engine.state.volumes.volume_use import disks_of

NAME: Final = "VolumeRestrictions"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
DISK_CONFLICT: Final = unschedulable("node(s) had no available disk").by(NAME)
CLAIM_IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
).by(NAME)
_STATUSES: Final = (SUCCESS, DISK_CONFLICT, CLAIM_IN_USE)
_DISK_CONFLICT: Final = 1
_CLAIM_IN_USE: Final = 2


class _ExclusiveUse:
    """The data that PreFilter computes for a pod.

    `claims` are the names of the pod's ReadWriteOncePod claims. `uses` is the number of these
    claims that other pods use. `disks` are the pod's volumes on disks that a second pod may not use
    at the same time.
    """

    __slots__ = ("claims", "disks", "uses")

    def __init__(self, claims: frozenset[str], disks: list[Volume], uses: int) -> None:
        self.claims = claims
        self.disks = disks
        self.uses = uses

    def clone(self) -> _ExclusiveUse:
        """Return an independent copy."""
        return _ExclusiveUse(self.claims, self.disks, self.uses)

    def move(self, pod: PodInfo, by: int) -> None:
        """Update `uses` for `pod`, which is added (`by` is 1) or removed (`by` is -1).

        As in upstream, claims are compared by name without their namespace.
        """
        self.uses += by * sum(name in self.claims for name in named_claims(pod.pod))


class VolumeRestrictions:
    """Rejects conflicting uses of ReadWriteOncePod claims and of some disks (PreFilter, Filter)."""

    name = NAME
    locality = Locality.CLUSTER
    events = frozenset(
        {EventKind.ASSIGNED_POD_DELETE, EventKind.NODE_ADD, EventKind.VOLUME_CLAIM_ADD}
    )

    def __init__(self, handle: Handle) -> None:
        """Use `handle` to look up claims, and to find out whether a pod uses a claim."""
        self._lookup = VolumeLookup(handle.cluster.related)
        self._use = handle.cluster.table.volume_use

    def concerns(self, shape: Shape) -> bool:
        """Return whether pods of `shape` have volumes; the plugin skips all other pods."""
        return shape.has_volumes

    # --- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if none of the pod's disks can conflict and none of its claims is in use.

        Of the claims, only those with access mode ReadWriteOncePod matter. Returns a rejection if
        one of the pod's claims does not exist.
        """
        claims: dict[str, None] = {}
        for name in named_claims(pod.pod):
            claim = self._lookup.claim(pod.namespace, name)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims[name] = None
        uses = sum(self._use.is_claim_used(f"{pod.namespace}/{name}") for name in claims)
        disks = [volume for volume in pod.pod.spec.volumes if is_exclusive(volume)]
        if not disks and not uses:
            return SKIP
        state.write(_ExclusiveUse(frozenset(claims), disks, uses))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `added` were on `node`."""
        state.read(_ExclusiveUse).move(added, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `removed` were no longer on `node`."""
        state.read(_ExclusiveUse).move(removed, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node with a disk conflict.

        If a ReadWriteOncePod claim of the pod is in use, every node is rejected.
        """
        found = state.read(_ExclusiveUse)
        if found.disks and any(in_conflict(found.disks, other) for other in node.pods.values()):
            return DISK_CONFLICT
        return CLAIM_IN_USE if found.uses > 0 else None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        found = state.read(_ExclusiveUse)
        codes = np.full(len(rows), _CLAIM_IN_USE if found.uses > 0 else 0, np.int32)
        suspects = dict.fromkeys(
            row for disk in disks_of(pod) for row in table.volume_use.rows_with(disk)
        )
        for row in suspects:
            if any(in_conflict(found.disks, other) for other in table.at(row).pods.values()):
                codes[rows == row] = _DISK_CONFLICT
        return Verdicts(codes, _STATUSES)

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return how the removal of pods affects the verdicts of `filter`.

        A removal can make a node feasible, but never infeasible. Removing a pod without volumes
        changes no verdict.
        """
        return RemovalEffect(has_volumes)

    # --- queueing hint ---------------------------------------------------------------------

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable."""
        gone, new = event.old, event.new
        if isinstance(new, PersistentVolumeClaim):
            is_ours = new.metadata.namespace == pod.namespace
            return is_ours and new.metadata.name in named_claims(pod.pod)
        if not isinstance(gone, PodInfo):
            return True
        if gone.namespace != pod.namespace:
            return False
        disks = [volume for volume in pod.pod.spec.volumes if is_exclusive(volume)]
        shared = set(named_claims(pod.pod)) & set(named_claims(gone.pod))
        return bool(shared) or in_conflict(disks, gone)


def in_conflict(disks: list[Volume], other: PodInfo) -> bool:
    """Return whether a volume of `other` conflicts with one of the volumes `disks`.

    upstream: isVolumeConflict
    """
    if not other.shape.has_volumes:
        return False
    theirs = [volume for volume in other.pod.spec.volumes if is_exclusive(volume)]
    return any(_exclude(a, b) for a in disks for b in theirs)


def _exclude(a: Volume, b: Volume) -> bool:
    """Return whether two pods, one with the volume `a` and one with `b`, conflict over a disk.

    Two read-only volumes of the same disk conflict only if the disk is an EBS disk.
    """
    gce, other_gce = a.gce_persistent_disk, b.gce_persistent_disk
    if gce is not None and other_gce is not None and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = a.aws_elastic_block_store, b.aws_elastic_block_store
    if ebs is not None and other_ebs is not None:
        return ebs.volume_id == other_ebs.volume_id
    iscsi, other_iscsi = a.iscsi, b.iscsi
    if iscsi is not None and other_iscsi is not None and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    rbd, other_rbd = a.rbd, b.rbd
    if rbd is None or other_rbd is None:
        return False
    is_same = (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
    shares_monitor = not set(rbd.monitors).isdisjoint(other_rbd.monitors)
    return is_same and shares_monitor and not (rbd.read_only and other_rbd.read_only)
