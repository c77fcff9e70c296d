"""ClusterSnapshot: the state of the cluster in one loop, with simulations as forks.

    with snapshot.fork() as fork:
        snapshot.add_node(node)
        snapshot.add_pod(pod, snapshot.find_place(pod))
        fork.commit()                   # without it, the end of the block reverts all changes

The snapshot has its own cluster state, which is updated between loops. Changes inside a fork are
applied to this state and recorded in an undo log. A fork is reverted by undoing its changes in
reverse order. The plugins of the scheduler read this state, so they need not know about
simulations.

Nodes have an order: first the nodes of the cluster, then the nodes that simulations added. A
first-fit search starts after the position at which the previous search ended.

upstream: simulator/clustersnapshot/predicate/{predicate_snapshot,plugin_runner}.go
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import ApiObject, Node, Pod, ResourceClaim, ResourceSlice
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.claim_reservation import (
    released_claims,
    reserved_claims,
    usable_claims,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.filter_plugins import build_plans
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.pod_spec import names_host
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.feasibility import Feasibility, filter_nodes
from fairlead.engine.framework.interface import PreFilterResult
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Positions = npt.NDArray[np.int64]
_NOT_ELIGIBLE = unresolvable()
_EQUAL_FOR_EQUAL_NODES: Final = frozenset(
    {"NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"}
)


class SnapshotFork:
    """A simulation in progress; see `ClusterSnapshot.fork`."""

    def __init__(self, start: int) -> None:
        """`start` is the length of the undo log when the fork begins."""
        self.start = start
        self.is_committed = False

    def commit(self) -> None:
        """Keep the changes of the fork when its `with` block ends.

        An outer fork may still revert them.
        """
        self.is_committed = True


class ClusterSnapshot:
    """The state of the cluster in one loop, with simulated changes.

    `last_index` is the index in `node_names` at which the last first-fit search ended.
    """

    def __init__(self, listers: Listers) -> None:
        """Create a snapshot without nodes; `listers` decide which pods it may contain."""
        self._listers = listers
        self._cluster = Cluster()
        self.table = self._cluster.table
        self._plans = build_plans(self._cluster)
        self._dynamic_resources = next(
            one for one in self._plans.framework.reserve if isinstance(one, DynamicResources)
        )
        self._order: list[str] = []
        self._rows: Positions | None = None
        self._undo: list[Callable[[], None]] = []
        self._revision = 0
        self._revisions: dict[str, int] = {}
        self.last_index = 0

    # --- changes of the cluster ------------------------------------------------------------

    def put(self, changed: ApiObject) -> None:
        """Store a new or changed object; remove a pod that the snapshot must no longer contain.

        `Listers.in_snapshot` decides which pods the snapshot contains. Call this only between
        loops.
        """
        if isinstance(changed, Pod):
            visible = self._listers.in_snapshot(changed)
            if visible is None:
                self.remove(changed)
                return
            changed = visible
        self._note(changed)
        self._cluster.apply(ObjectChanged(changed))

    def remove(self, gone: ApiObject) -> None:
        """Remove a deleted object. Call this only between loops."""
        self._note(gone)
        self._cluster.apply(ObjectDeleted(gone))

    def _note(self, changed: ApiObject) -> None:
        """Give new revisions to the nodes that a change affects.

        A changed ResourceClaim affects no node by itself. The change takes effect when a pod that
        uses the claim is bound, which is a change of the pod.
        """
        if isinstance(changed, Node):
            self._changed(changed.metadata.name)
        elif isinstance(changed, ResourceSlice):
            self._changed(changed.spec.node_name)
        elif isinstance(changed, Pod):
            before = self._cluster.pods.get(changed.key)
            self._changed(changed.spec.node_name)
            if before is not None:
                self._changed(before.pod.spec.node_name)

    def _changed(self, name: str) -> int:
        """Give the node `name` a new revision; return its previous revision."""
        before = self._revisions.get(name, 0)
        self._revision += 1
        self._revisions[name] = self._revision
        return before

    def revision(self, name: str) -> int:
        """Return a number that identifies the current state of the node `name` and its pods.

        When a fork is reverted, the earlier number is restored together with the state.
        """
        return self._revisions.get(name, 0)

    @contextmanager
    def loop(self, nodes: Iterable[str]) -> Iterator[None]:
        """Start an autoscaler loop, in which the snapshot has `nodes` in this order.

        All changes of the loop are reverted at the end of the `with` block.
        """
        self._order = list(nodes)
        self._rows = None
        with self.fork():
            yield

    # --- reading ---------------------------------------------------------------------------

    @property
    def node_names(self) -> list[str]:
        """The names of all nodes: first those given to `loop`, in that order, then added nodes."""
        return self._order

    def node(self, name: str) -> NodeInfo | None:
        """Return the node called `name`; None if it is not in the snapshot."""
        return self.table.find(name)

    def nodes(self) -> list[NodeInfo]:
        """Return all nodes, in the order of `node_names`."""
        found = (self.table.find(name) for name in self._order)
        return [info for info in found if info is not None]

    def pods_on(self, info: NodeInfo) -> list[PodInfo]:
        """Return the pods on a node: the cluster's pods, oldest first, then simulated pods."""
        order, simulated = self._listers.order, len(self._listers.order) + 1
        if len(info.pods) < 2:
            return list(info.pods.values())
        pods = info.pods.values()
        return sorted(
            pods,
            key=lambda pod: order.get(pod.key, simulated) if pod.pod.spec.node_name else 1 << 62,
        )

    def slices_of(self, name: str) -> list[ResourceSlice]:
        """Return the ResourceSlices of the node `name`; shared ResourceSlices are left out."""
        return self._cluster.devices.pools.slices_of(name)

    def claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the ResourceClaims of `pod`; () if one is missing or `pod` must not use one."""
        return usable_claims(pod, self._cluster.related)

    def pod_info(self, pod: Pod) -> PodInfo:
        """Return the PodInfo of `pod`. Pods with equal specs have the same `Shape` object."""
        return PodInfo(pod, self._cluster.shapes.shape_of(pod))

    # --- forks -----------------------------------------------------------------------------

    @contextmanager
    def fork(self) -> Iterator[SnapshotFork]:
        """Start a simulation, which lasts until the end of the `with` block.

        The end of the block reverts all changes. A call of `commit` on the result prevents this.
        """
        fork = SnapshotFork(len(self._undo))
        try:
            yield fork
        finally:
            if not fork.is_committed:
                while len(self._undo) > fork.start:
                    self._undo.pop()()

    def add_node(
        self,
        node: Node,
        pods: Iterable[PodInfo] = (),
        devices: Iterable[ResourceSlice | ResourceClaim] = (),
    ) -> None:
        """Add a node with `pods`; the node becomes the last one in `node_names`.

        `devices` are the ResourceSlices of the node, and the allocated claims of `pods`.
        """
        name = node.metadata.name
        revision = self._changed(name)
        info = self.table.put_node(node)
        for pod in pods:
            self.table.add_pod(info, pod)
        self._order.append(name)
        self._rows = None
        self._undo.append(lambda: self._forget_last_node(name, revision))
        for one in devices:
            self._cluster.apply(ObjectChanged(one))
            self._undo.append(partial(self._cluster.apply, ObjectDeleted(one)))

    def _forget_last_node(self, name: str, revision: int) -> None:
        self._revisions[name] = revision
        self.table.remove_node(name)
        assert self._order.pop() == name
        self._rows = None

    def replace_node(self, node: Node) -> None:
        """Replace a node with another version of it; its pods stay."""
        info = self.table.find(node.metadata.name)
        assert info is not None
        before, revision = info.node, self._changed(info.name)
        self.table.put_node(node)
        self._undo.append(lambda: self._put_back(before, revision))

    def _put_back(self, before: Node, revision: int) -> None:
        self._revisions[before.metadata.name] = revision
        self.table.put_node(before)

    def remove_node(self, name: str) -> None:
        """Remove a node with its pods; do nothing if it does not exist.

        The ResourceSlices of the node are kept. These ResourceSlices have no effect, because no
        other node can use their devices.
        """
        info = self.table.find(name)
        if info is None:
            return
        place, node = self._order.index(name), info.node
        revision = self._changed(name)
        pods = self.table.remove_node(name)
        del self._order[place]
        self._rows = None
        self._undo.append(lambda: self._restore_node(place, node, pods, revision))

    def _restore_node(self, place: int, node: Node, pods: list[PodInfo], revision: int) -> None:
        self._revisions[node.metadata.name] = revision
        info = self.table.put_node(node)
        for pod in pods:
            self.table.add_pod(info, pod)
        self._order.insert(place, node.metadata.name)
        self._rows = None

    def add_pod(self, pod: PodInfo, name: str) -> None:
        """Add `pod` to the node `name`, and allocate devices to the claims of `pod`.

        The pod must fit the node.
        """
        if pod.shape.spec.resource_claims:
            for claim in reserved_claims(self._dynamic_resources, pod, name):
                self._replace_claim(claim)
        revision = self._changed(name)
        info = self.table.find(name)
        assert info is not None
        ports = dict(info.used_ports) if pod.shape.host_ports else None
        self.table.add_pod(info, pod)
        self._undo.append(lambda: self._take_off(pod, name, ports, revision))

    def _take_off(
        self,
        pod: PodInfo,
        name: str,
        ports: dict[tuple[str, str, int], None] | None,
        revision: int,
    ) -> None:
        self._revisions[name] = revision
        info = self.table.find(name)
        assert info is not None
        self.table.remove_pod(info, info.pods[pod.id])
        if ports is not None:
            info.used_ports = ports

    def remove_pod(self, pod: PodInfo, name: str) -> None:
        """Remove `pod` from the node `name`, and release the claims of `pod`.

        `released_claims` describes how the claims change.
        """
        if pod.shape.spec.resource_claims:
            for claim in released_claims(pod.pod, self._cluster.related):
                self._replace_claim(claim)
        revision = self._changed(name)
        info = self.table.find(name)
        assert info is not None
        ports = dict(info.used_ports) if pod.shape.host_ports else None
        self.table.remove_pod(info, pod)
        self._undo.append(lambda: self._put_on(pod, name, ports, revision))

    def _put_on(
        self,
        pod: PodInfo,
        name: str,
        ports: dict[tuple[str, str, int], None] | None,
        revision: int,
    ) -> None:
        self._revisions[name] = revision
        info = self.table.find(name)
        assert info is not None
        self.table.add_pod(info, pod)
        if ports is not None:
            info.used_ports = ports

    def _replace_claim(self, claim: ResourceClaim) -> None:
        before = self._cluster.related.get(ResourceClaim, claim.key)
        assert before is not None
        self._cluster.apply(ObjectChanged(claim))
        self._undo.append(partial(self._cluster.apply, ObjectChanged(before)))

    # --- predicates ------------------------------------------------------------------------

    def rejection(self, pod: PodInfo, name: str) -> Status | None:
        """Return the status with which a filter rejects `pod` on the node `name`.

        Returns None if the pod fits. A node that is not in the snapshot rejects every pod.

        upstream: plugin_runner.go: RunFiltersOnNode
        """
        info = self.table.find(name)
        if info is None:
            return _NOT_ELIGIBLE
        framework, state = self._plans.framework, CycleState()
        for plugin in framework.pre_filters:
            answer = framework.run_pre_filter(state, pod, plugin)
            if isinstance(answer, Status):
                return answer
            names = answer.node_names if isinstance(answer, PreFilterResult) else None
            if names is not None and name not in names:
                return _NOT_ELIGIBLE
        return framework.run_filters(state, pod, info)

    def fits_by_resources(self, pod: PodInfo) -> bool:
        """Return whether free resources alone decide which of several equal nodes `pod` fits.

        Nodes are equal here if they differ only in their names and pods. Returns False if a filter
        might also check something else for `pod`. Examples are spread, pod affinity, volumes, host
        ports and node names.
        """
        framework, state = self._plans.framework, CycleState()
        for plugin in framework.pre_filters:
            if framework.run_pre_filter(state, pod, plugin) is not None:
                return False
        applied = (point.name for point in framework.filters)
        return not names_host(pod.shape.spec) and all(
            name in _EQUAL_FOR_EQUAL_NODES or name in state.skipped_filters for name in applied
        )

    def find_place(
        self, pod: PodInfo, among: Collection[str] | None = None, first: int = 0
    ) -> str | None:
        """Return the name of the next node that fits `pod`; None if no node fits.

        The search starts after the node that was found last. The search tries only nodes whose
        names are in `among` (None: all names) and whose index in `node_names` is at least `first`.
        Cordoned nodes are never chosen, even if the pod tolerates the cordon.

        upstream: plugin_runner.go: RunFiltersUntilPassingNode
        """
        count = len(self._order)
        if first >= count:
            return None
        rows = self._rows_in_order()
        verdicts = filter_nodes(self._plans, pod)
        if verdicts.rejected is not None:
            return None
        open_at = (_codes(verdicts, rows) == 0) & ~self.table.unschedulable[rows]
        places = np.flatnonzero(open_at).tolist()
        start = (self.last_index + 1) % count
        for place in (*(p for p in places if p >= start), *(p for p in places if p < start)):
            if place >= first and (among is None or self._order[place] in among):
                self.last_index = place
                return self._order[place]
        return None

    def _rows_in_order(self) -> Positions:
        if self._rows is None:
            self._rows = np.array([info.row for info in self.nodes()], np.int64)
        return self._rows


def _codes(found: Feasibility, rows: Positions) -> npt.NDArray[np.int32]:
    """Return the result of the filters for each of `rows`; 0 means that the pod fits.

    `rows` are the row numbers of nodes in the node table. If the filters did not examine a node,
    its result is -1: the pod does not fit. The returned array has the shape (rows,).
    """
    if found.plan.node_names is None:
        return found.codes[rows]
    by_row = np.full(found.plan.table.capacity, -1, np.int32)
    by_row[found.plan.rows] = found.codes
    return by_row[rows]
