"""The extension points and QueueingHints of NodeVolumeLimits."""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.api.objects import (
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from fairlead.api.pods.volumes import all_claims, is_claimed, is_migratable
from fairlead.engine.core.status import SKIP, SUCCESS, Status, unschedulable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.framework.preemption.removal_effect import (
    RemovalEffect,
    has_volumes,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.node_volume_limits.attachable import Attachables
from fairlead.engine.plugins.node_volume_limits.attached import AttachedVolumes
from fairlead.engine.plugins.volume_lookup.csi_node_columns import (
    NO_LIMIT,
    CSINodeColumns,
    volume_limits,
)
from fairlead.engine.plugins.volume_lookup.in_tree_volume import TranslationError, csi_of_inline
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

NAME: Final = "NodeVolumeLimits"
TOO_MANY: Final = unschedulable("node(s) exceed max volume count").by(NAME)
_TOO_MANY: Final = 1


class _PodVolumes:
    """The incoming pod's attachable volumes, in the form that `Attachables.of` returns."""

    __slots__ = ("volumes",)

    def __init__(self, volumes: dict[str, str] | Status) -> None:
        self.volumes = volumes


class NodeVolumeLimits:
    """Rejects nodes where the pod would exceed a CSI volume limit (PreFilter, Filter)."""

    name = NAME
    locality = Locality.CLUSTER
    events = frozenset(
        {
            EventKind.CSI_NODE_ADD,
            EventKind.CSI_NODE_UPDATE,
            EventKind.ASSIGNED_POD_DELETE,
            EventKind.VOLUME_CLAIM_ADD,
            EventKind.VOLUME_ATTACHMENT_DELETE,
        }
    )

    def __init__(self, handle: Handle) -> None:
        cluster = handle.cluster
        self._table = cluster.table
        self._related = cluster.related
        self._attachables = Attachables(VolumeLookup(cluster.related))
        self._attached = AttachedVolumes(cluster, self._attachables)
        self._nodes = CSINodeColumns(cluster)

    def concerns(self, shape: Shape) -> bool:
        """Return whether the pods of `shape` have volumes."""
        return shape.has_volumes

    # --- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod has neither claims nor in-tree volumes with a CSI driver."""
        if not any(is_claimed(one) or is_migratable(one) for one in pod.pod.spec.volumes):
            return SKIP
        state.write(_PodVolumes(self._attachables.of(pod, is_new=True)))
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject the node if the pod's additional volumes would exceed a limit.

        A volume that another pod on the node uses is not counted again.
        """
        wanted = state.read(_PodVolumes).volumes
        if isinstance(wanted, Status):
            return wanted.by(NAME)
        found = self._related.get(CSINode, node.name) if wanted else None
        limits = volume_limits(found) if found is not None else {}
        if not limits:
            return None
        attached = self._attached.of_node(node)
        if attached.failure is not None:
            return attached.failure.by(NAME)
        for driver, names in _by_driver(wanted).items():
            fresh = sum(name not in attached.used for name in names)
            if fresh and driver in limits and attached.count(driver) + fresh > limits[driver]:
                return TOO_MANY
        return None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        wanted = state.read(_PodVolumes).volumes
        if isinstance(wanted, Status):
            return Verdicts(np.ones(len(rows), np.int32), (SUCCESS, wanted.by(NAME)))
        self._nodes.refresh()
        self._attached.refresh()
        codes = np.zeros(len(rows), np.int32)
        for driver, names in _by_driver(wanted).items():
            limits = self._nodes.limits(driver)
            if limits is not None:
                codes[self._is_exceeded(driver, names, limits)[rows]] = _TOO_MANY
        if self._attached.failing and wanted:
            return self._with_failures(codes, rows)
        return Verdicts(codes, (SUCCESS, TOO_MANY))

    def _is_exceeded(self, driver: str, names: list[str], limits: np.ndarray) -> np.ndarray:
        """Return, for every node, whether the volumes `names` would exceed the driver's limit.

        `limits` has the limit of the node at each row (NO_LIMIT if there is none).
        """
        needed = np.full(len(limits), len(names), np.int64)
        for name in names:
            needed[self._attached.rows_using(name)] -= 1
        counts = self._attached.counts(driver)
        total = needed if counts is None else counts + needed
        found: np.ndarray = (limits != NO_LIMIT) & (needed > 0) & (total > limits)
        return found

    def _with_failures(self, codes: np.ndarray, rows: Rows) -> Verdicts:
        """Return the verdicts `codes`, but with an error for each node whose volumes are unknown.

        Nodes without volume limits get no error. `codes` are the verdicts on the nodes at `rows`;
        this method overwrites `codes`.
        """
        statuses = [SUCCESS, TOO_MANY]
        for row in self._attached.failing:
            failure = self._attached.at(row).failure
            node = self._related.get(CSINode, self._table.at(row).name)
            if failure is not None and node is not None and volume_limits(node):
                codes[rows == row] = len(statuses)
                statuses.append(failure.by(NAME))
        return Verdicts(codes, tuple(statuses))

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return how the verdict on a node can change when a pod is removed from the node.

        A removal can change the verdict from infeasible to feasible, but not the reverse. The
        removal of a pod without volumes changes no verdict.
        """
        return RemovalEffect(has_volumes)

    # --- queueing hint ---------------------------------------------------------------------

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable.

        The answer is True for most events. For an event in the left column, it is True only if the
        condition in the right column holds:

            a new or changed claim        the pod uses the claim
            a changed CSINode             a limit was raised or added
            a removed pod                 the removed pod had claims or in-tree volumes with a
                                          CSI driver
            a removed VolumeAttachment    `pod` may have volumes of the attachment's driver
        """
        old, new = event.old, event.new
        match old, new:
            case _, PersistentVolumeClaim():
                is_ours = new.metadata.namespace == pod.namespace
                return is_ours and new.metadata.name in all_claims(pod.pod)
            case CSINode(), CSINode():
                return _has_more_room(old, new)
            case PodInfo(), None:
                volumes = old.pod.spec.volumes
                return any(is_claimed(one) or is_migratable(one) for one in volumes)
            case VolumeAttachment(), None:
                return _may_need(pod, old.spec.attacher)
            case _:
                return True


def _by_driver(volumes: dict[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, driver in volumes.items():
        names.setdefault(driver, []).append(name)
    return names


def _has_more_room(old: CSINode, new: CSINode) -> bool:
    """Return whether a limit was raised or added.

    upstream: isSchedulableAfterCSINodeUpdated
    """
    before = volume_limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in volume_limits(new).items())


def _may_need(pod: PodInfo, driver: str) -> bool:
    """Return whether a volume of the pod may belong to the CSI driver `driver`."""
    for volume in pod.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        try:
            source = csi_of_inline(volume)
        except TranslationError:
            return True
        if source is not None and source.driver == driver:
            return True
    return False
