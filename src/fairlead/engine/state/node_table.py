"""NodeTable: the nodes of the cluster as columns, with the pods and images on the nodes.

Every node has a row while it exists; the row of a removed node is reused. `NodeInfo` and the NumPy
columns store the same values on purpose. Code that needs a single row reads Python ints from the
`NodeInfo`. Reading Python ints is ten times faster than reading NumPy scalars. Code that needs all
rows reads whole columns. Only `NodeTable` writes `NodeInfo` and the columns.

    columns (int64, [resource, row]):  allocatable, requested
    columns (int64, [row]):            allowed_pods, pod_count, taint_ids, nonzero_cpu,
                                       nonzero_memory (these two are nonzero[0] and nonzero[1])
    columns (bool,  [row]):            alive, unschedulable
    columns (float64, [2, row]):       offered: allocatable cpu and memory as floats, for divisions
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.api.pods.replicas import Replicas
from fairlead.api.quantity import INT64_MAX
from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.label_column import LabelColumn, read_only
from fairlead.engine.state.loaded_pods import LoadedGroup, LoadedPods, Representatives
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY, ResourceColumns
from fairlead.engine.state.volumes.volume_use import VolumeUse

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Column = TypeVar("Column", np.int64, np.bool_, np.float64)
Key = TypeVar("Key", bound=Hashable)

_CAPACITY_INITIAL: Final = 64
# For amounts below this bound, a float represents 100 times the amount exactly.
EXACT_BELOW: Final = 1 << 45


class PlacedReplicas(Struct, frozen=True):
    """Loaded pods: the i-th pod of `replicas` is on `nodes[i]`.

    All of these pods have the same requests, ports and pod affinity as `replica`, which is one of
    them. `make(replicas, index)` returns the PodInfo of `replicas[index]`.
    """

    replicas: Replicas
    nodes: Sequence[NodeInfo]
    replica: PodInfo
    make: Callable[[Replicas, int], PodInfo]


class _Columns:
    """The columns of a NodeTable, which only the table writes."""

    __slots__ = (
        "alive",
        "allocatable",
        "allowed_pods",
        "nonzero",
        "nonzero_cpu",
        "nonzero_memory",
        "offered",
        "pod_count",
        "requested",
        "taint_ids",
        "unschedulable",
    )

    def __init__(self, capacity: int, resources: int) -> None:
        self.allocatable: Ints = np.zeros((resources, capacity), np.int64)
        self.requested: Ints = np.zeros((resources, capacity), np.int64)
        self.allowed_pods: Ints = np.zeros(capacity, np.int64)
        self.pod_count: Ints = np.zeros(capacity, np.int64)
        self.nonzero: Ints = np.zeros((2, capacity), np.int64)
        self.nonzero_cpu, self.nonzero_memory = self.nonzero
        self.alive: Bools = np.zeros(capacity, np.bool_)
        self.taint_ids: Ints = np.zeros(capacity, np.int64)
        self.unschedulable: Bools = np.zeros(capacity, np.bool_)
        self.offered: Floats = np.zeros((2, capacity))

    def flat(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns with one value for each row."""
        counts = (self.allowed_pods, self.pod_count, self.nonzero_cpu, self.nonzero_memory)
        return (*counts, self.alive, self.taint_ids, self.unschedulable)

    def wide(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns with several values for each row, except `nonzero`."""
        return (self.allocatable, self.requested, self.offered)


class NodeTable:
    """The nodes of the cluster and their columns; each node has a row.

    `node_log` contains the rows whose Node object changed, and `pod_log` contains the rows whose
    pods changed. `unusual` are the rows of nodes whose allocatable cpu or memory is 0, or is at
    least EXACT_BELOW (2^45) units. `resource_epoch` increases when an extended resource gains,
    changes or loses its DeviceClass, because this may affect all nodes. The entry of a node in
    `taint_ids` is 0 if the node has no taints. Nodes with the same entry have the same taints in
    the same order, apart from timeAdded. Nodes with equal taints usually, but not always, have the
    same entry. The columns are read-only, because plugins get slices of them, and a slice is not a
    copy.
    """

    # CPython finds attributes and methods of an object with more than 30 attributes slowly, unless
    # the class has __slots__.
    __slots__ = (
        "_capacities",
        "_capacity_ids",
        "_columns",
        "_every_row",
        "_free",
        "_index",
        "_label_columns",
        "_rows",
        "_taint_ids",
        "_taints",
        "alive",
        "allocatable",
        "allowed_pods",
        "capacity",
        "count",
        "images",
        "loaded",
        "node_log",
        "nonzero",
        "nonzero_cpu",
        "nonzero_memory",
        "offered",
        "pod_count",
        "pod_index",
        "pod_log",
        "representatives",
        "requested",
        "resource_epoch",
        "resources",
        "size",
        "taint_ids",
        "unschedulable",
        "unusual",
        "volume_use",
    )

    def __init__(self) -> None:
        """Start without nodes."""
        self.resources = ResourceColumns()
        self.images = ImageTable()
        self.node_log: ChangeLog[int] = ChangeLog()
        self.pod_log: ChangeLog[int] = ChangeLog()
        self.loaded = LoadedPods(self.pod_log)
        self.representatives = Representatives()
        self.pod_index = PodIndex()
        self.volume_use = VolumeUse()
        self.unusual: set[int] = set()
        self.resource_epoch = 0
        self.count = 0
        self.size = 0
        self._every_row: Ints = np.arange(0)
        self._free: list[int] = []
        self._index: dict[str, int] = {}
        self._capacities: dict[tuple[int, ...], int] = {}
        self._capacity_ids = count()
        self._taints: dict[tuple[tuple[str, str, str], ...], int] = {}
        self._taint_ids = count(1)
        self._rows: list[NodeInfo | None] = []
        self._label_columns: dict[str, LabelColumn] = {}
        self._allocate(_CAPACITY_INITIAL, len(self.resources))

    def _allocate(self, capacity: int, resources: int) -> None:
        self.capacity = capacity
        own = self._columns = _Columns(capacity, resources)
        self.allocatable = read_only(own.allocatable)
        self.requested = read_only(own.requested)
        self.allowed_pods = read_only(own.allowed_pods)
        self.pod_count = read_only(own.pod_count)
        self.nonzero = read_only(own.nonzero)
        self.nonzero_cpu, self.nonzero_memory = self.nonzero
        self.alive = read_only(own.alive)
        self.taint_ids = read_only(own.taint_ids)
        self.unschedulable = read_only(own.unschedulable)
        self.offered = read_only(own.offered)

    # --- queries ---------------------------------------------------------------------------

    def find(self, name: str) -> NodeInfo | None:
        """Return the node called `name`, or None."""
        row = self._index.get(name)
        return None if row is None else self._rows[row]

    def find_all(self, names: Iterable[str]) -> list[NodeInfo | None]:
        """Return the node, or None, for each of `names`; faster than calling `find` for each."""
        rows = map(self._index.get, names)
        return [None if row is None else self._rows[row] for row in rows]

    def at(self, row: int) -> NodeInfo:
        """Return the node at `row`; raises LookupError if there is no node in that row."""
        node = self._rows[row]
        if node is None:
            raise LookupError(row)
        return node

    def every_row(self) -> Ints:
        """Return all rows, ascending, including the rows of removed nodes.

        The result is the same read-only array until a row is added.
        """
        if len(self._every_row) != self.size:
            self._every_row = np.arange(self.size)
            self._every_row.flags.writeable = False
        return self._every_row

    def values(self, columns: npt.NDArray[Column], rows: Ints) -> npt.NDArray[Column]:
        """Return the values of `columns` ([row] or [resource, row]) for the nodes at `rows`.

        The caller must not change the result. The values are not copied if `rows` is the array that
        `every_row` returns.
        """
        if rows is self._every_row:
            return columns[..., : self.size]
        return columns.take(rows, axis=-1)

    def nodes(self) -> list[NodeInfo]:
        """Return all nodes in row order."""
        return [node for node in self._rows if node is not None]

    def label_column(self, key: str) -> LabelColumn:
        """Return the column of label `key`; it is built on first use and updated from then on."""
        column = self._label_columns.get(key)
        if column is None:
            column = self._label_columns[key] = LabelColumn(key, self.capacity)
            for node in self.nodes():
                column.set(node.row, node.labels)
        return column

    # --- nodes -----------------------------------------------------------------------------

    def put_node(self, node: Node) -> NodeInfo:
        """Add `node`, or update the node of the same name, and return its NodeInfo.

        An updated node keeps its pods.
        """
        name = node.metadata.name
        info = self.find(name)
        if info is None:
            info = self._new_row(name)
            before: dict[str, int] = {}
            self._advance(labels=True)
        else:
            before, old = info.image_sizes, info.node
            if old.metadata.labels != node.metadata.labels:
                self._advance(labels=True)
            elif old.spec.taints != node.spec.taints:
                self._advance(labels=False)
            if _have_equal_labels_and_resources(old, node):
                info.node, info.labels = node, node.metadata.labels
                self._write_spec(info)
                self.node_log.append(info.row)
                return info
        info.set_node(node, self.resources)
        info.capacity = self._capacity_id(info)
        if info.image_sizes != before:
            self.images.remove(before)
            self.images.add(info.image_sizes)
        self.widen()
        self._write_node(info)
        self.node_log.append(info.row)
        return info

    def _capacity_id(self, info: NodeInfo) -> int:
        """Return the id of the capacity of `info`; no other capacity ever gets this id."""
        key = (info.allowed_pods, *info.allocatable)
        return self._id_of(self._capacities, key, self._capacity_ids)

    def _taint_id(self, info: NodeInfo) -> int:
        """Return the id of the taints of `info`; no other taints ever get this id."""
        taints = info.node.spec.taints
        if not taints:
            return 0
        key = tuple((one.key, one.value, one.effect) for one in taints)
        return self._id_of(self._taints, key, self._taint_ids)

    def _id_of(self, ids: dict[Key, int], key: Key, new_ids: Iterator[int]) -> int:
        found = ids.get(key)
        if found is None:
            if len(ids) > self.size:
                ids.clear()
            found = ids[key] = next(new_ids)
        return found

    def note_all(self) -> None:
        """Add every node to the log of changed nodes.

        Call this method when the mapping of extended resources to DeviceClasses has changed.
        """
        self.resource_epoch += 1
        for row in self._index.values():
            self.node_log.append(row)

    def remove_node(self, name: str) -> list[PodInfo]:
        """Remove the node `name`; return the pods that were on it."""
        row = self._index.pop(name)
        info = self.at(row)
        self.images.remove(info.image_sizes)
        for pod in info.pods.values():
            self.pod_index.remove(row, pod)
            if pod.shape.has_volumes:
                self.volume_use.remove(row, pod)
        self._advance(labels=True)
        self._rows[row] = None
        self._free.append(row)
        self.count -= 1
        for column in self._columns.flat():
            column[row] = 0
        for wide in self._columns.wide():
            wide[:, row] = 0
        self.unusual.discard(row)
        self.loaded.note_removed(row)
        for labels in self._label_columns.values():
            labels.set(row, {})
        self.node_log.append(row)
        return list(info.pods.values())

    def _advance(self, *, labels: bool) -> None:
        """Record a change of nodes; set `labels` if the labels of a node may have changed.

        The versions `pod_index.nodes` and, if `labels` is set, `pod_index.labels` are increased.
        """
        self.pod_index.nodes.advance()
        if labels:
            self.pod_index.labels.advance()

    def _new_row(self, name: str) -> NodeInfo:
        row = self._free.pop() if self._free else self.size
        if row == self.size:
            self.size += 1
            self._rows.append(None)
        if row >= self.capacity:
            # Grow in small steps: every pass over columns pays for unused capacity.
            self._grow(self.capacity + self.capacity // 8, len(self.requested))
        info = NodeInfo(name, row)
        self._rows[row] = info
        self._index[name] = row
        self.count += 1
        self._columns.alive[row] = True
        return info

    def _write_node(self, info: NodeInfo) -> None:
        row, own = info.row, self._columns
        own.allocatable[: len(info.allocatable), row] = info.allocatable
        own.allocatable[len(info.allocatable) :, row] = 0
        cpu, memory = own.offered[:, row] = info.allocatable[CPU], info.allocatable[MEMORY]
        if 0 < cpu < EXACT_BELOW and 0 < memory < EXACT_BELOW:
            self.unusual.discard(row)
        else:
            self.unusual.add(row)
        own.allowed_pods[row] = info.allowed_pods
        self._write_spec(info)
        for column in self._label_columns.values():
            column.set(row, info.labels)

    def _write_spec(self, info: NodeInfo) -> None:
        self._columns.taint_ids[info.row] = self._taint_id(info)
        self._columns.unschedulable[info.row] = info.node.spec.unschedulable

    # --- pods ------------------------------------------------------------------------------

    def add_pod(self, info: NodeInfo, pod: PodInfo, *, log: bool = True) -> None:
        """Add `pod` to the node, its sums of requests and the indexes; `remove_pod` undoes this.

        The change is added to `pod_log` only if `log` is set.
        """
        info.add_pod(pod)
        self.pod_index.add(info.row, pod)
        if pod.shape.has_volumes:
            self.volume_use.add(info.row, pod)
        self._write_pods(info, pod)
        if log:
            self.pod_log.append(info.row)

    def add_replicas(self, placed: Sequence[PlacedReplicas]) -> None:
        """Add all pods of `placed`; the result is the same as if `add_pod` added each of them."""
        every: list[NodeInfo] = [info for some in placed for info in some.nodes]
        if not every:
            return
        self.loaded.begin()
        rows = np.array([info.row for info in every])
        self._enter(placed, every, rows)
        for some in placed:
            for port in some.replica.shape.host_ports:
                for info in some.nodes:
                    info.used_ports[port] = None
            self.pod_index.add_replicas([info.row for info in some.nodes], some.replica)
            self.representatives.add(some.replicas, some.replica)
        self.widen()
        self._sum_up(placed, rows)
        for row, info in {info.row: info for info in every}.items():
            info.requested = self.requested[:, row].tolist()
            info.nonzero_cpu, info.nonzero_memory = self.nonzero[:, row].tolist()
            self._columns.pod_count[row] = len(info.pods)
            self.pod_log.append(row)
        ends = np.cumsum([len(some.nodes) for some in placed])
        groups = zip(placed, np.split(rows, ends[:-1]), strict=True)
        self.loaded.end([LoadedGroup(some.replicas, at, some.replica) for some, at in groups])

    @staticmethod
    def _enter(placed: Sequence[PlacedReplicas], nodes: Sequence[NodeInfo], rows: Ints) -> None:
        """Add the pods in `placed` to their nodes.

        The i-th pod of all pods in `placed` is on `nodes[i]`, the node at `rows[i]`.
        """
        uids = list(chain.from_iterable(some.replicas.uids for some in placed))
        entries = list(chain.from_iterable(some.replicas.rows for some in placed))
        # The pods are sorted by node, because one dictionary for each node is faster than one call
        # for each pod.
        by_node = np.argsort(rows, kind="stable")
        ends = np.flatnonzero(np.diff(rows[by_node])) + 1
        for indices in np.split(by_node, ends):
            those = indices.tolist()
            pods = nodes[those[0]].lazy_pods(placed[0].make)
            pods.load({uids[index]: entries[index] for index in those})

    def _sum_up(self, placed: Sequence[PlacedReplicas], rows: Ints) -> None:
        """Add the requests of the pods in `placed` to the sums of their nodes.

        The i-th pod of all pods in `placed` is on the node at `rows[i]`.
        """
        sizes = [len(some.nodes) for some in placed]
        shapes = [some.replica.shape for some in placed]
        loads = [dict(shape.load) for shape in shapes]
        for column in sorted({column for load in loads for column in load}):
            amounts = np.array([load.get(column, 0) for load in loads], np.int64)
            np.add.at(self._columns.requested[column], rows, amounts.repeat(sizes))
        for column in range(len(self.nonzero)):
            amounts = np.array([shape.nonzero_load[column] for shape in shapes], np.int64)
            np.add.at(self._columns.nonzero[column], rows, amounts.repeat(sizes))

    def remove_pod(self, info: NodeInfo, pod: PodInfo, *, log: bool = True) -> None:
        """Remove `pod` from the node, its sums of requests and the indexes.

        The change is added to `pod_log` only if `log` is set.
        """
        info.remove_pod(pod)
        self.pod_index.remove(info.row, pod)
        if pod.shape.has_volumes:
            self.volume_use.remove(info.row, pod)
        self._write_pods(info, pod)
        if log:
            self.pod_log.append(info.row)

    def replace_pod(self, info: NodeInfo, before: PodInfo, pod: PodInfo, *, log: bool) -> None:
        """Replace `before` on the node with `pod`, a version of the pod with the same requests.

        The change is added to `pod_log` only if `log` is set.
        """
        self.pod_index.replace(info.row, before, pod)
        if pod.shape.has_volumes:
            self.volume_use.remove(info.row, before)
            self.volume_use.add(info.row, pod)
        info.stored_pods[pod.id] = pod
        if log:
            self.pod_log.append(info.row)

    def _write_pods(self, info: NodeInfo, pod: PodInfo) -> None:
        row, load = info.row, pod.shape.load
        if load and load[-1][0] >= len(self.requested):
            self.widen()
        own = self._columns
        try:
            for column, _ in load:
                own.requested[column, row] = info.requested[column]
            own.nonzero_cpu[row] = info.nonzero_cpu
            own.nonzero_memory[row] = info.nonzero_memory
        except OverflowError:
            self._write_limited(info)
        own.pod_count[row] = len(info.pods)

    def _write_limited(self, info: NodeInfo) -> None:
        """Write the requests of `info` to the columns.

        An amount that exceeds the range of int64 is written as the largest int64.
        """
        row, own = info.row, self._columns
        for column, amount in enumerate(info.requested):
            own.requested[column, row] = min(amount, INT64_MAX)
        own.nonzero_cpu[row] = min(info.nonzero_cpu, INT64_MAX)
        own.nonzero_memory[row] = min(info.nonzero_memory, INT64_MAX)

    # --- capacity --------------------------------------------------------------------------

    def widen(self) -> None:
        """Add columns for all resource names seen so far."""
        if len(self.resources) > len(self.requested):
            self._grow(self.capacity, len(self.resources))

    def _grow(self, capacity: int, resources: int) -> None:
        before = self._columns
        self._allocate(capacity, resources)
        for new, old in zip(self._columns.wide(), before.wide(), strict=True):
            new[: old.shape[0], : old.shape[1]] = old
        for new, old in zip(self._columns.flat(), before.flat(), strict=True):
            new[: len(old)] = old
        for column in self._label_columns.values():
            column.grow(capacity)

    def validate(self) -> None:
        """Check stored sums and indexes against the pods; raises AssertionError if one is wrong."""
        for info in self.nodes():
            fresh = NodeInfo(info.name, info.row)
            for pod in info.pods.values():
                fresh.add_pod(pod)
            for column in range(len(self.requested)):
                assert info.requested_of(column) == fresh.requested_of(column), info
                assert self.requested[column, info.row] == fresh.requested_of(column), info
            assert self.pod_count[info.row] == len(info.pods), info
            assert self.nonzero_cpu[info.row] == info.nonzero_cpu == fresh.nonzero_cpu, info
            assert self.nonzero_memory[info.row] == info.nonzero_memory == fresh.nonzero_memory
            offered = info.allocatable[CPU], info.allocatable[MEMORY]
            assert tuple(self.offered[:, info.row]) == offered, info
            usual = all(0 < amount < EXACT_BELOW for amount in offered)
            assert (info.row in self.unusual) != usual, info
        self.pod_index.validate(self.nodes())
        volume_use = VolumeUse()
        for info in self.nodes():
            for pod in info.pods.values():
                if pod.shape.has_volumes:
                    volume_use.add(info.row, pod)
        assert self.volume_use == volume_use


def _have_equal_labels_and_resources(old: Node, new: Node) -> bool:
    """Return whether two versions of a node have equal labels, allocatable amounts and images."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
    )


class ImageTable:
    """For each image, its size and the number of nodes that have the image.

    `version` increases when a result of `size_and_nodes` may have changed. Nodes may report
    different sizes for an image. As in upstream, the first reported size is used until no node has
    the image any more (pkg/scheduler/backend/cache/cache.go: addNodeImageStates,
    removeNodeImageStates).
    """

    def __init__(self) -> None:
        """Start without images."""
        self._states: dict[str, list[int]] = {}
        self.version = 0

    def add(self, sizes: Mapping[str, int]) -> None:
        """Count the images of a node; `sizes` maps image names to bytes. `remove` undoes this."""
        self.version += 1
        for name, size in sizes.items():
            self._states.setdefault(name, [size, 0])[1] += 1

    def remove(self, sizes: Mapping[str, int]) -> None:
        """Stop counting the images of a node; `sizes` is the argument of the earlier `add`."""
        self.version += 1
        for name in sizes:
            state = self._states[name]
            state[1] -= 1
            if not state[1]:
                del self._states[name]

    def size_and_nodes(self, name: str) -> tuple[int, int]:
        """Return (bytes, number of nodes) of image `name`; (0, 0) if no node has it."""
        size, nodes = self._states.get(name, (0, 0))
        return size, nodes
