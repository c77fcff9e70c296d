"""VolumeBinding: the plugin's arguments, extension points and QueueingHints.

upstream: volume_binding.go
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from fairlead.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.field_problem import invalid
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import SKIP, Code, Status, error
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Preparation, Rows, Verdicts
from fairlead.engine.framework.preemption.removal_effect import (
    NO_EFFECT,
    RemovalEffect,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.volume_binding.class_capacity import volume_limit
from fairlead.engine.plugins.volume_binding.find_volumes import VolumeFinder
from fairlead.engine.plugins.volume_binding.node_volumes import (
    NAME,
    STATUSES,
    NodeVolumes,
    PodVolumes,
)
from fairlead.engine.plugins.volume_binding.pod_claims import PodClaims, read_claims
from fairlead.engine.plugins.volume_binding.pre_bind import (
    BindingFailedError,
    BindingIncompleteError,
    Decision,
    VolumeBinder,
)
from fairlead.engine.plugins.volume_lookup.csi_node_columns import MIGRATED_PLUGINS
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The plugin arguments of VolumeBinding.

    `bind_timeout_seconds` is the time that a pod waits for its volumes before it is retried.
    `shape` must not be set: upstream accepts it only if the feature gate StorageCapacityScoring is
    on.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[dict[str, int], ...] | None = None

    def __post_init__(self) -> None:
        if self.bind_timeout_seconds < 0:
            why = "invalid BindTimeoutSeconds, should not be a negative value"
            raise ValueError(f"bindTimeoutSeconds: {invalid(self.bind_timeout_seconds, why)}")
        if self.shape is not None:
            why = (
                "unexpected field `shape`, remove it or turn on the feature gate"
                " StorageCapacityScoring"
            )
            points = [{key.capitalize(): n for key, n in one.items()} for one in self.shape]
            raise ValueError(f"shape: {invalid(points, why)}")


CHECK_EVERY: Final = seconds(1)
_BINDING_VOLUMES: Final = "binding volumes"
_NO_ARGS: Final = VolumeBindingArgs()
_WAIT: Final = Status(Code.WAIT)
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


class _Volumes:
    """One pod's claims, and the volumes that the claims can use on each node.

    The class has no `clone`, so all dry runs of a scheduling cycle share one `_Volumes` object.
    """

    __slots__ = ("_found", "claims", "decision", "finder")

    def __init__(self, claims: PodClaims, finder: VolumeFinder) -> None:
        self.claims = claims
        self.finder = finder
        self.decision: Decision | None = None
        self._found: NodeVolumes | None = None

    @property
    def found(self) -> NodeVolumes:
        """For every node, the volumes that the claims can use there; computed on first use."""
        if self._found is None:
            self._found = self.finder.find_volumes(self.claims)
        return self._found


class VolumeBinding:
    """Rejects nodes on which the pod's volumes are not available and cannot be made available.

    Implements PreFilter, Filter, Score (always skipped), Reserve and PreBind.
    """

    name = NAME
    locality = Locality.CLUSTER
    events = EVENTS

    def __init__(self, handle: Handle, args: VolumeBindingArgs = _NO_ARGS) -> None:
        self._table = handle.cluster.table
        self._lookup = VolumeLookup(handle.cluster.related)
        self._finder = VolumeFinder(handle.cluster)
        self._binder = VolumeBinder(handle.cluster)
        self._timeout = seconds(args.bind_timeout_seconds)

    def concerns(self, shape: Shape) -> bool:
        """Return whether the pods of `shape` have volumes."""
        return shape.has_volumes

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return True if `event` may make the pod schedulable."""
        return is_schedulable_after(pod, event)

    # --- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod has no claims, and a rejection if a claim cannot be used yet."""
        claims = read_claims(self._lookup, pod)
        if isinstance(claims, Status):
            return claims
        if not claims.bound and not claims.delayed:
            return SKIP
        state.write(_Volumes(claims, self._finder))
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node where the pod's volumes are not available and cannot be made available."""
        flags = state.read(_Volumes).found.flags
        if flags is None or not flags[node.row]:
            return None
        return STATUSES[int(flags[node.row])]

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        flags = state.read(_Volumes).found.flags
        return Verdicts(np.zeros(len(rows), np.int32) if flags is None else flags[rows], STATUSES)

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return the effect of removing pods: none, because volumes do not depend on pods."""
        return NO_EFFECT

    def volumes_on(self, state: CycleState, node: NodeInfo) -> PodVolumes:
        """Return the bindings and provisions for the pod on `node`, which must be feasible.

        The result is empty if PreFilter returned SKIP.
        """
        found = state.find(_Volumes)
        return PodVolumes() if found is None else found.found.at(node.row)

    # --- Score -----------------------------------------------------------------------------

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True, because `pre_score` returns SKIP for every pod."""
        return True

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP, because capacity is not scored (StorageCapacityScoring is off)."""
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return 0; never called."""
        return 0

    # --- bindings --------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Assume the bindings for `node`, so that the next scheduling cycle respects them."""
        found = state.find(_Volumes)
        if found is None or not found.claims.delayed:
            return None
        row = self._table.find(node)
        if row is not None:
            found.decision = self._binder.assume(found.found.at(row.row), node)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Revert the assumed bindings that the API does not show yet."""
        found = state.find(_Volumes)
        if found is not None and found.decision is not None:
            self._binder.revert(found.decision)
            found.decision = None

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """Return the commands that write the bindings; the pod then waits for its volumes.

        Returns None if no binding has been assumed.
        """
        found = state.find(_Volumes)
        if found is None or found.decision is None:
            return None
        return Preparation(
            self._binder.commands(found.decision, node),
            interval=CHECK_EVERY,
            timeout=self._timeout,
            on_timeout=f"{_BINDING_VOLUMES}: context deadline exceeded",
            on_cancel=f"{_BINDING_VOLUMES}: context canceled",
        )

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return None if all volumes are bound, WAIT if one is not bound yet, or an error."""
        decision = state.read(_Volumes).decision
        assert decision is not None
        try:
            self._binder.check(decision, pod, node)
        except BindingIncompleteError:
            return _WAIT
        except BindingFailedError as cause:
            return error(f"{_BINDING_VOLUMES}: {cause}")
        return None


def is_schedulable_after(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether `event` may make the pod schedulable.

    Returns True for most events. For the events on the left, the condition on the right must hold:

        a new or changed claim          the pod uses the claim
        a changed StorageClass          allowedTopologies changed
        a changed CSINode               the migrated plugins changed
        a changed CSIStorageCapacity    its limit was raised or newly set
        a changed CSIDriver             the driver no longer publishes its capacity, and the pod
                                        has an inline volume of the driver
    """
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
            limit, old_limit = volume_limit(new), volume_limit(old)
            return limit is not None and (old_limit is None or limit > old_limit)
        case CSIDriver() as old, CSIDriver() as new:
            # Like upstream, this ignores claims.
            driver, volumes = new.metadata.name, pod.pod.spec.volumes
            has_inline = any(one.csi is not None and one.csi.driver == driver for one in volumes)
            return old.spec.storage_capacity and not new.spec.storage_capacity and has_inline
        case _:
            return True
