"""NodeResourcesFit: a node needs free resources for the pod (plugins/noderesources/fit.go).

Filter reports every insufficient resource. If the pod would not even fit the empty node, the
rejection is UnschedulableAndUnresolvable. An extended resource can be mapped to a DeviceClass. On
nodes that list none of such a resource, this plugin ignores the resource, and DynamicResources
allocates devices instead (shouldDelegateResourceToDRA).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import DeviceClass, Node
from fairlead.api.quantity import whole_value
from fairlead.engine.core.status import SUCCESS, Code, Status, unschedulable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Mask, Rows, Verdicts
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.node_resources.args import FitArgs
from fairlead.engine.plugins.node_resources.scoring_strategy import scoring_strategy
from fairlead.engine.state.devices.extended_resources import IMPLICIT_PREFIX
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import FIRST_SCALAR, PODS, allocatable_amount
from fairlead.engine.state.shape import Shape
from fairlead.engine.state.shape_columns import ShapeColumns

NAME: Final = "NodeResourcesFit"
TOO_MANY_PODS: Final = "Too many pods"
INSUFFICIENT: Final = "Insufficient"  # followed by the name of the resource
_NO_ROOM_FOR_PODS: Final = unschedulable(TOO_MANY_PODS).by(NAME)
_FITS: Final = (SUCCESS,)
_UNLIMITED: Final = 1 << 62
_REJECTIONS_MAX: Final = 1_024
Ints = npt.NDArray[np.int64]


class NodeResourcesFit:
    """Rejects nodes that lack free resources for the pod, and scores nodes by utilisation."""

    name = NAME
    locality = Locality.ROW
    events = frozenset(
        {
            EventKind.ASSIGNED_POD_DELETE,
            EventKind.ASSIGNED_POD_SCALE_DOWN,
            EventKind.POD_SCALE_DOWN,
            EventKind.NODE_ADD,
            EventKind.NODE_ALLOCATABLE,
            EventKind.DEVICE_CLASS_ADD,
            EventKind.DEVICE_CLASS_UPDATE,
        }
    )
    wakes_alike = True

    def __init__(
        self, handle: Handle, args: FitArgs | None = None, *, checks_empty_node: bool = True
    ) -> None:
        """Start with the scoring strategy and the ignored resources in `args`.

        `checks_empty_node` is False for Kubernetes before 1.34. In these versions, no rejection by
        this plugin is UnschedulableAndUnresolvable, so preemption also tries nodes that are too
        small for the pod.
        """
        self._checks_empty_node = checks_empty_node
        self._table = handle.cluster.table
        self._resources = handle.cluster.table.resources
        self._extended = handle.cluster.devices.extended
        strategy = scoring_strategy(args or FitArgs(), handle)
        self.score = strategy.score
        self.score_columns = strategy.score_columns
        self.score_shapes = strategy.score_shapes
        self.reads_only_sums = strategy.reads_only_sums
        self._args = args or FitArgs()
        self._rejections: dict[tuple[tuple[int, ...], bool, bool], Status] = {}

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return None if the pod fits, else a rejection with the insufficient resources."""
        wanted = pod.shape.wanted
        requested, allocatable = node.requested, node.allocatable
        short: list[int] = []
        beyond = False
        for column, amount in wanted:
            offered = allocatable[column] if column < len(allocatable) else 0
            used = requested[column] if column < len(requested) else 0
            if amount > offered - used and not self._is_ignored(column):
                if offered == 0 and self._is_delegated(column):
                    continue
                short.append(column)
                beyond = beyond or amount > offered
        crowded = len(node.pods) + 1 > node.allowed_pods
        if not short and not crowded:
            return None
        return self._rejection(tuple(short), crowded=crowded, beyond=beyond)

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        wanted = [entry for entry in pod.shape.wanted if not self._is_ignored(entry[0])]
        fits = table.values(table.pod_count, rows) < table.values(table.allowed_pods, rows)
        for column, amount in wanted:
            offered = table.values(table.allocatable[column], rows)
            enough = table.values(table.requested[column], rows) <= offered - amount
            fits &= enough | (offered == 0) if self._is_delegated(column) else enough
        codes = np.zeros(len(rows), np.int32)
        if np.logical_and.reduce(fits):
            return Verdicts(codes, _FITS)
        short = np.flatnonzero(~fits)
        codes[short], statuses = self._reasons(table, rows[short], wanted)
        return Verdicts(codes, statuses)

    def _reasons(
        self, table: NodeTable, rows: Rows, wanted: list[tuple[int, int]]
    ) -> tuple[npt.NDArray[np.int64], list[Status]]:
        """Return (codes, statuses) for the nodes at `rows`, which the pod does not fit.

        `wanted` are the (column, amount) pairs of the requested resources. A code is an index into
        the statuses. Index 0 is SUCCESS, which the caller uses for other nodes. A bit mask records
        why a node is rejected. Nodes with equal masks get the same code. Bit 0 is set if the node
        would have too many pods. Bit 1 is set if a request exceeds the allocatable amount. Bit (2 +
        i) is set if the i-th requested resource is insufficient.
        """
        bits = (table.pod_count[rows] + 1 > table.allowed_pods[rows]).astype(np.int64)
        for i, (column, amount) in enumerate(wanted):
            offered = table.allocatable[column, rows]
            short = amount > offered - table.requested[column, rows]
            if self._is_delegated(column):
                short &= offered != 0
            bits |= short * (4 << i) | (short & (amount > offered)) * 2
        distinct, codes = np.unique(bits, return_inverse=True)
        statuses = [self._decode(mask, wanted) for mask in distinct.tolist()]
        return codes + 1, [SUCCESS, *statuses]

    def filter_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Mask | None:
        """Return, for each pod spec in `shapes`, whether its pods fit the node at `row`.

        Returns None if the pods of all specs fit.
        """
        node, wanted = table.at(row), shapes.wanted
        if len(node.pods) < node.allowed_pods and all(
            amount <= node.free_of(column) for column, amount in enumerate(shapes.largest)
        ):
            return None
        if table.pod_count[row] >= table.allowed_pods[row]:
            return np.zeros(wanted.shape[1], np.bool_)
        resources, at = len(wanted), slice(row, row + 1)
        free = table.allocatable[:resources, at] - table.requested[:resources, at]
        if self._args.ignores_anything:
            ignored = [column for column in range(resources) if self._is_ignored(column)]
            free[ignored] = _UNLIMITED
        for column in range(FIRST_SCALAR, resources) if self._extended else ():
            if self._is_delegated(column) and not table.allocatable[column, row]:
                free[column] = _UNLIMITED
        fits: Mask = np.logical_and.reduce(wanted <= free)
        return fits

    def filter_beside(
        self, others: Sequence[PodInfo], pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Return the verdict of `filter` as if the pods `others` were on `node` as well."""
        short: list[int] = []
        beyond = False
        for column, amount in pod.shape.wanted:
            left = node.free_of(column) - amount
            for other in others:
                for taken, number in other.shape.load:
                    if taken == column:
                        left -= number
            if left < 0 and not self._is_ignored(column):
                offered = node.allocatable_of(column)
                if offered == 0 and self._is_delegated(column):
                    continue
                short.append(column)
                beyond = beyond or amount > offered
        crowded = len(node.pods) + len(others) + 1 > node.allowed_pods
        if not short and not crowded:
            return None
        return self._rejection(tuple(short), crowded=crowded, beyond=beyond)

    def spare_after(
        self,
        removed: Mapping[Shape, int],
        added: Iterable[PodInfo],
        pod: PodInfo,
        node: NodeInfo,
    ) -> tuple[tuple[int, ...], list[int]]:
        """Return the free amounts on `node` after some pods leave, and `pod` and others arrive.

        `removed` maps a pod spec (`Shape`) to the number of pods with this spec that leave. `pod`
        and the pods in `added` arrive.

        Returns (columns, free amounts). The columns are those of the resources that `pod` requests
        and this plugin checks. If an amount is negative, `pod` does not fit. The number of pods is
        not checked.
        """
        wanted: Sequence[tuple[int, int]] = pod.shape.wanted
        if self._extended or self._args.ignores_anything:
            wanted = [
                entry
                for entry in wanted
                if not self._is_ignored(entry[0])
                and (node.allocatable_of(entry[0]) or not self._is_delegated(entry[0]))
            ]
        columns = tuple([column for column, _ in wanted])
        spare = [node.free_of(column) - amount for column, amount in wanted]
        for shape, count in removed.items():
            for i, amount in enumerate(shape.amounts_of(columns)):
                spare[i] += count * amount
        for other in added:
            for i, amount in enumerate(other.shape.amounts_of(columns)):
                spare[i] -= amount
        return columns, spare

    def rejection_after(
        self,
        columns: Sequence[int],
        spare: Sequence[int],
        pod: PodInfo,
        node: NodeInfo,
        *,
        crowded: bool,
    ) -> Status:
        """Return the rejection of a node that lacks resources or would have too many pods.

        `columns` and `spare` are the result of `spare_after`. The node lacks the resources whose
        amount in `spare` is negative. `crowded` is True if the node would have too many pods.
        """
        short = tuple([c for c, amount in zip(columns, spare, strict=True) if amount < 0])
        beyond = False
        for column, amount in pod.shape.wanted:
            beyond = beyond or (column in short and amount > node.allocatable_of(column))
        return self._rejection(short, crowded=crowded, beyond=beyond)

    def counted_requests(self, pod: PodInfo) -> list[tuple[int, int]] | None:
        """Return (column, amount) of each requested resource that the arguments do not ignore.

        Returns None if a DeviceClass is mapped to one of these resources. Only nodes that list such
        a resource are checked for it. So the resources to check differ between nodes.
        """
        wanted = [entry for entry in pod.shape.wanted if not self._is_ignored(entry[0])]
        return None if any(self._is_delegated(column) for column, _ in wanted) else wanted

    def rejections_after(
        self, wanted: list[tuple[int, int]], spare: Sequence[Ints], crowded: Mask, rows: Rows
    ) -> tuple[Ints, list[Status]]:
        """Return (codes, statuses) for the nodes at `rows`; code 0 means that the pod fits.

        A code is an index into the statuses. `wanted` contains the requested resources, as
        `counted_requests` returns them. For each of them, `spare` contains the amount left on each
        node if the pod were placed there. `crowded` marks the nodes that would have too many pods.
        """
        bits = crowded.astype(np.int64)
        for i, ((column, amount), left) in enumerate(zip(wanted, spare, strict=True)):
            short = left < 0
            beyond = short & (amount > self._table.allocatable[column, rows])
            bits |= short * (4 << i) | beyond * 2
        distinct, codes = np.unique(bits, return_inverse=True)
        statuses = [self._decode(mask, wanted) if mask else SUCCESS for mask in distinct.tolist()]
        return (codes, statuses) if SUCCESS in statuses else (codes + 1, [SUCCESS, *statuses])

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable.

        The result is True in the following cases:
        - A pod was removed, or `pod` itself was scaled down.
        - Another pod was scaled down, and now requests less of a resource that `pod` requests.
        - A node was added, and `pod` would fit the node if the node were empty.
        - A node now has more of a requested resource or accepts more pods, and `pod` would fit the
          node if the node were empty.
        - A DeviceClass is newly mapped to a requested resource.
        """
        if event.kind is EventKind.ASSIGNED_POD_DELETE:  # by far the most frequent
            return True
        old, new = event.old, event.new
        if isinstance(new, Node):
            return self._could_hold(pod, new) and (
                not isinstance(old, Node) or self._gained(pod, old, new)
            )
        if event.kind is EventKind.ASSIGNED_POD_SCALE_DOWN:
            assert isinstance(old, PodInfo)
            assert isinstance(new, PodInfo)
            after = dict(new.shape.load)
            before = dict(old.shape.load)
            return any(after.get(c, 0) < before.get(c, 0) for c, _ in pod.shape.wanted)
        if isinstance(new, DeviceClass):
            return self._is_provided_by(pod, old, new)
        return True

    def _is_provided_by(self, pod: PodInfo, old: object, new: DeviceClass) -> bool:
        """Return whether `new`, unlike `old`, is mapped to a resource that the pod requests.

        If `old` is not a DeviceClass, the DeviceClass `new` was added.

        upstream: isSchedulableAfterDeviceClassEvent
        """
        explicit = new.spec.extended_resource_name
        provided = [explicit] if explicit else []
        if not isinstance(old, DeviceClass):
            provided.append(IMPLICIT_PREFIX + new.key)
        elif old.spec.extended_resource_name == explicit:
            return False
        return any(self._resources.names[column] in provided for column, _ in pod.shape.requests)

    def _could_hold(self, pod: PodInfo, node: Node) -> bool:
        """Return whether the pod would fit the node if the node were empty (fit.go: isFit)."""
        offered = node.status.allocatable
        names = self._resources.names
        return whole_value(offered.get(PODS, 0)) >= 1 and all(
            amount <= (there := allocatable_amount(names[column], offered))
            or (there == 0 and self._is_delegated(column))
            for column, amount in pod.shape.wanted
        )

    def _gained(self, pod: PodInfo, old: Node, new: Node) -> bool:
        """Return whether `new` can have more pods than `old`, or has more of a requested resource.

        The result is always True if a DeviceClass provides a requested resource and `new` lists
        none of it. The reason is that new devices do not appear in the Node object.
        """
        wanted = [self._resources.names[column] for column, _ in pod.shape.wanted]
        if any(
            self._is_delegated(column)
            and not allocatable_amount(self._resources.names[column], new.status.allocatable)
            for column, _ in pod.shape.wanted
        ):
            return True
        return any(
            allocatable_amount(name, new.status.allocatable)
            > allocatable_amount(name, old.status.allocatable)
            for name in (*wanted, PODS)
        )

    def _decode(self, mask: int, wanted: list[tuple[int, int]]) -> Status:
        short = tuple(column for i, (column, _) in enumerate(wanted) if mask & (4 << i))
        return self._rejection(short, crowded=bool(mask & 1), beyond=bool(mask & 2))

    def _rejection(self, short: tuple[int, ...], *, crowded: bool, beyond: bool) -> Status:
        beyond = beyond and self._checks_empty_node
        found = self._rejections.get((short, crowded, beyond))
        if found is None:
            names = tuple(self._resources.names[column] for column in short)
            fixed = sum(column < FIRST_SCALAR for column in short)
            scalars = tuple(sorted(names[fixed:]))
            found = rejection(names[:fixed], scalars, crowded=crowded, beyond=beyond)
            if len(self._rejections) < _REJECTIONS_MAX:
                self._rejections[short, crowded, beyond] = found
        return found

    def _is_delegated(self, column: int) -> bool:
        """Return whether a DeviceClass provides the resource on nodes that list none of it."""
        if column < FIRST_SCALAR or not self._extended:
            return False
        return self._extended.class_of(self._resources.names[column]) is not None

    def _is_ignored(self, column: int) -> bool:
        if column < FIRST_SCALAR or not self._args.ignores_anything:
            return False
        return self._args.ignores(self._resources.names[column])


@lru_cache(maxsize=4096)
def rejection(
    fixed: tuple[str, ...], scalars: tuple[str, ...], *, crowded: bool, beyond: bool
) -> Status:
    """Return the rejection that names all insufficient resources in upstream's order.

    `fixed` are the insufficient resources among cpu, memory and ephemeral-storage. `scalars` are
    the other insufficient resources. `crowded` is True if the node would have too many pods.
    `beyond` is True if the pod would not even fit the empty node.
    """
    reasons: tuple[str, ...] = (TOO_MANY_PODS,) if crowded else ()
    reasons += tuple(f"{INSUFFICIENT} {name}" for name in (*fixed, *scalars))
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if beyond else Code.UNSCHEDULABLE
    return Status(code, reasons, NAME)
