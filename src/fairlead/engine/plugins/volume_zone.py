"""VolumeZone: a bound volume with zone or region labels needs a node with matching labels.

As in upstream, the claims of ephemeral volumes are not checked here. VolumeBinding checks the node
affinity of their volumes. A node that has neither a zone label nor a region label is not rejected.
upstream: plugins/volumezone/volume_zone.go
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.api.pods.volumes import named_claims
from fairlead.api.well_known_label import BETA_REGION, BETA_ZONE, REGION, ZONE
from fairlead.engine.core.status import SKIP, Status, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.framework.preemption.removal_effect import (
    NO_EFFECT,
    RemovalEffect,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.volume_lookup.in_tree_volume import ZONE_DELIMITER
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeLookup,
    claim_not_found,
    class_name,
    class_not_found,
    volume_not_found,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

NAME: Final = "VolumeZone"
OTHER_ZONE: Final = unresolvable("node(s) had no available volume zone").by(NAME)
_STATUSES: Final = (OTHER_ZONE, OTHER_ZONE)

_KEYS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_PRESENT_KEY: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class VolumeTopology(Struct, frozen=True):
    """A zone or region label of a volume: the node's label `key` must have one of `values`."""

    key: str
    values: tuple[str, ...]


class _Topologies:
    """The labels that the pod's bound volumes require.

    `conflicts` marks the nodes that do not match; it is computed on first use.
    """

    __slots__ = ("conflicts", "wanted")

    def __init__(self, wanted: list[VolumeTopology]) -> None:
        self.wanted = wanted
        self.conflicts: npt.NDArray[np.bool_] | None = None

    def in_conflict(self, table: NodeTable) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether the node does not match the required labels."""
        if self.conflicts is None:
            self.conflicts = _conflicts(self.wanted, table)
        return self.conflicts


class VolumeZone:
    """Rejects nodes outside the zone or region of the pod's bound volumes (PreFilter, Filter)."""

    name = NAME
    locality = Locality.CLUSTER
    events = frozenset(
        {
            EventKind.STORAGE_CLASS_ADD,
            EventKind.NODE_ADD,
            EventKind.NODE_LABEL,
            EventKind.VOLUME_CLAIM_ADD,
            EventKind.VOLUME_CLAIM_UPDATE,
            EventKind.VOLUME_ADD,
            EventKind.VOLUME_UPDATE,
        }
    )

    def __init__(self, handle: Handle) -> None:
        """The plugin looks up claims and volumes through `handle` when it needs them."""
        self._lookup = VolumeLookup(handle.cluster.related)

    def concerns(self, shape: Shape) -> bool:
        """Return whether the pods of `shape` have volumes."""
        return shape.has_volumes

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if no volume of the pod's claims has a zone or region label.

        Returns a rejection if a claim or its volume does not exist. Also returns a rejection if a
        claim names no volume and the volumeBindingMode of its StorageClass is not
        WaitForFirstConsumer.
        """
        wanted: list[VolumeTopology] = []
        for name in named_claims(pod.pod):
            answer = self._topologies(pod.namespace, name)
            if isinstance(answer, Status):
                return answer
            wanted += answer
        if not wanted:
            return SKIP
        state.write(_Topologies(wanted))
        return None

    def _topologies(self, namespace: str, name: str) -> list[VolumeTopology] | Status:
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = self._lookup.claim(namespace, name)
        if claim is None:
            return unresolvable(claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            return self._of_unbound(claim)
        volume = self._lookup.volume(volume_name)
        if volume is None:
            return unresolvable(volume_not_found(volume_name))
        return topologies_of(volume)

    def _of_unbound(self, claim: PersistentVolumeClaim) -> list[VolumeTopology] | Status:
        """Return [] if the claim's class delays binding, otherwise a rejection."""
        name = class_name(claim)
        if not name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._lookup.class_of(claim)
        if found is None:
            return unresolvable(class_not_found(name))
        if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return []
        return unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node whose zone or region labels do not match the labels of a volume."""
        labels = node.labels
        if not any(key in labels for key in _KEYS):
            return None
        for topology in state.read(_Topologies).wanted:
            value = labels.get(topology.key)
            if value is None:
                value = labels.get(_PRESENT_KEY.get(topology.key, topology.key))
            if value not in topology.values:
                return OTHER_ZONE
        return None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        conflicts = state.read(_Topologies).in_conflict(table)
        return Verdicts(conflicts[rows].astype(np.int32), _STATUSES)

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return the effect of removing pods: none, because the zones of volumes are fixed."""
        return NO_EFFECT

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable."""
        old, new = event.old, event.new
        match new:
            case StorageClass():
                return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
            case PersistentVolumeClaim():
                is_ours = new.metadata.namespace == pod.namespace
                return is_ours and new.metadata.name in named_claims(pod.pod)
            case PersistentVolume() if isinstance(old, PersistentVolume):
                return topologies_of(old) != topologies_of(new)
            case _:
                return True


def topologies_of(volume: PersistentVolume) -> list[VolumeTopology]:
    """Return the zone and region labels of `volume`.

    A value such as `a__b` lists several zones. A label that lists an empty name is left out.
    """
    labels = volume.metadata.labels
    found = []
    for key in _KEYS:
        if key in labels:
            values = tuple(value.strip() for value in labels[key].split(ZONE_DELIMITER))
            if all(values):
                found.append(VolumeTopology(key, values))
    return found


def _conflicts(wanted: list[VolumeTopology], table: NodeTable) -> npt.NDArray[np.bool_]:
    found = np.zeros(table.capacity, np.bool_)
    for topology in wanted:
        column = table.label_column(topology.key)
        suits = _has_one_of(table, topology.key, topology.values)
        present = _PRESENT_KEY.get(topology.key)
        if present is not None:
            suits |= (column.ids < 0) & _has_one_of(table, present, topology.values)
        found |= ~suits
    is_labelled = np.zeros(table.capacity, np.bool_)
    for key in _KEYS:
        is_labelled |= table.label_column(key).ids >= 0
    return found & is_labelled


def _has_one_of(table: NodeTable, key: str, values: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    column = table.label_column(key)
    ids = np.array([column.id_of(value) for value in values], np.int64)
    found: npt.NDArray[np.bool_] = np.isin(column.ids, ids)
    return found
