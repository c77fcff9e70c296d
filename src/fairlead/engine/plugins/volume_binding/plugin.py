"""VolumeBinding: the plugin's extension points."""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import SKIP, Code, Status, error
from fairlead.engine.framework.cluster_event import ClusterEvent
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Preparation, Rows, Verdicts
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.volume_binding.args import VolumeBindingArgs
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
    Decision,
    NotYetError,
    VolumeBinder,
)
from fairlead.engine.plugins.volume_binding.queueing_hint import EVENTS, is_woken_by
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

CHECK_EVERY: Final = seconds(1)
_DOING: Final = "binding volumes"
_NO_ARGS: Final = VolumeBindingArgs()
_WAIT: Final = Status(Code.WAIT)


class _Volumes:
    """One pod's claims and, computed on first use, the volumes of the nodes for them.

    All hypotheses of a cycle share them, because they do not depend on pods.
    """

    __slots__ = ("_found", "claims", "decision", "finder")

    def __init__(self, claims: PodClaims, finder: VolumeFinder) -> None:
        self.claims = claims
        self.finder = finder
        self.decision: Decision | None = None
        self._found: NodeVolumes | None = None

    @property
    def found(self) -> NodeVolumes:
        """The volumes of the nodes, computed on the first call."""
        if self._found is None:
            self._found = self.finder.find_volumes(self.claims)
        return self._found


class VolumeBinding:
    """PreFilter, Filter, Score (always skipped), Reserve, PreBind."""

    name = NAME
    locality = Locality.CLUSTER
    events = EVENTS

    def __init__(self, handle: Handle, args: VolumeBindingArgs = _NO_ARGS) -> None:
        """Reads claims, volumes and CSI objects; records planned bindings."""
        self._table = handle.cluster.table
        self._lookup = VolumeLookup(handle.cluster.related)
        self._finder = VolumeFinder(handle.cluster)
        self._binder = VolumeBinder(handle.cluster)
        self._timeout = seconds(args.bind_timeout_seconds)

    def concerns(self, shape: Shape) -> bool:
        """False for pods without volumes."""
        return shape.has_volumes

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """See `engine.plugins.volume_binding.queueing_hint`."""
        return is_woken_by(pod, event)

    # --- filtering -------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """SKIP without claims."""
        claims = read_claims(self._lookup, pod)
        if isinstance(claims, Status):
            return claims
        if not claims.bound and not claims.delayed:
            return SKIP
        state.write(_Volumes(claims, self._finder))
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Accept nodes where the pod's volumes are or can be available."""
        flags = state.read(_Volumes).found.flags
        if flags is None or not flags[node.row]:
            return None
        return STATUSES[int(flags[node.row])]

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """`filter` over `rows`."""
        flags = state.read(_Volumes).found.flags
        return Verdicts(np.zeros(len(rows), np.int32) if flags is None else flags[rows], STATUSES)

    def volumes_on(self, state: CycleState, node: NodeInfo) -> PodVolumes:
        """What would be bound and provisioned on a feasible node; nothing after a SKIP."""
        found = state.find(_Volumes)
        return PodVolumes() if found is None else found.found.at(node.row)

    # --- scoring ---------------------------------------------------------------------------

    def scores_alike(self, pod: PodInfo) -> bool:
        """Always True: capacity is not scored (StorageCapacityScoring is off)."""
        return True

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Always skipped."""
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Never called: PreScore skips."""
        return 0

    # --- binding ---------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Record the planned bindings."""
        found, row = state.find(_Volumes), self._table.find(node)
        if found is not None and found.claims.delayed and row is not None:
            found.decision = self._binder.promise(found.found.at(row.row), node)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Drop planned bindings that the API does not show yet."""
        found = state.find(_Volumes)
        if found is not None and found.decision is not None:
            self._binder.take_back(found.decision)
            found.decision = None

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """Write the planned bindings and wait until the volumes are bound."""
        found = state.find(_Volumes)
        if found is None or found.decision is None:
            return None
        return Preparation(
            self._binder.commands(found.decision, node),
            interval=CHECK_EVERY,
            timeout=self._timeout,
            on_timeout=f"{_DOING}: context deadline exceeded",
        )

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """None once the volumes are bound."""
        decision = state.read(_Volumes).decision
        assert decision is not None
        try:
            self._binder.check(decision, pod, node)
        except NotYetError:
            return _WAIT
        except BindingFailedError as cause:
            return error(f"{_DOING}: {cause}")
        return None
