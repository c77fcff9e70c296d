"""GPU fragmentation: places pods where they leave the fewest free GPUs unusable for later pods.

This is Fragmentation Gradient Descent, from Weng et al., "Beware of Fragmentation: Scheduling
GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023. A node's fragmentation
for a class of pods is the part of its free GPUs that a pod of this class cannot use:

    all free GPUs                        if the class requests no GPU, or does not fit the node
    the GPUs that are too small for it   otherwise

The waste of a node is the mean over the classes of the typical workload, weighted by their
frequency. The node whose waste decreases most (or increases least) gets the highest score.

Kubernetes adds up a node's GPUs, so two half GPUs count as a whole GPU. So this plugin is also a
Filter that treats GPUs as single devices. The API does not say which device a pod uses. The plugin
infers the devices by placing a node's pods one after another, each share on the fullest GPU with
enough room. If other pods have ended since then, the real devices may differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from fairlead import plugin

Ints = npt.NDArray[np.int64]

GPU = 1000  # milli
TOO_SMALL = plugin.unschedulable("no GPU has enough left")


class PodClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Pods with equal requests: milli CPUs, and milli GPUs (a share of one GPU, or whole GPUs)."""

    pods: int
    cpu_milli: int
    gpu_milli: int = 0


class GpuFragmentation:
    """A Filter and Score plugin; both results depend only on a node and its pods."""

    name = "GpuFragmentation"
    locality = plugin.Locality.ROW
    events = frozenset(
        {
            plugin.EventKind.NODE_ADD,
            plugin.EventKind.NODE_ALLOCATABLE,
            plugin.EventKind.ASSIGNED_POD_DELETE,
        }
    )

    class Args(msgspec.Struct, frozen=True, rename="camel"):
        """`workload` is the typical workload; a GPU is 1000 units of `resource`."""

        workload: tuple[PodClass, ...]
        resource: str = "openb/gpu-milli"

    def __init__(self, handle: plugin.Handle, args: Args) -> None:
        """Check the arguments. Raises ValueError for an invalid workload."""
        if not args.workload or any(one.pods < 1 for one in args.workload):
            raise ValueError("args.workload: every class needs at least one pod")
        self._table = handle.cluster.table
        self._column = self._table.resources.column(args.resource)
        self._waste = Waste(args.workload)
        self._free: Ints = np.zeros((0, 0), np.int64)
        self._seen = (0, 0)

    # --- devices ---------------------------------------------------------------------------

    def wanted(self, pod: plugin.PodInfo) -> int:
        """Return the request of `pod`, in milli GPUs."""
        return dict(pod.shape.load).get(self._column, 0)

    def devices(self, node: plugin.NodeInfo) -> list[int]:
        """Return the free milli GPUs of each GPU of `node`."""
        free = [GPU] * (node.allocatable_of(self._column) // GPU)
        for pod in node.pods.values():
            take(free, self.wanted(pod))
        return free

    def _columns(self, table: plugin.NodeTable) -> Ints:
        """Return `devices` of every row; only rows that changed are computed again."""
        nodes = table.node_log.since(self._seen[0])
        pods = table.pod_log.since(self._seen[1])
        self._seen = (table.node_log.position, table.pod_log.position)
        width = int(table.allocatable[self._column].max()) // GPU
        if nodes is None or pods is None or self._free.shape != (table.capacity, width):
            self._free = np.zeros((table.capacity, width), np.int64)
            changed = np.flatnonzero(table.alive).tolist()
        else:
            changed = sorted({*nodes, *pods})
        for row in changed:
            free = self.devices(table.at(row)) if table.alive[row] else []
            self._free[row, : len(free)] = free
            self._free[row, len(free) :] = 0
        return self._free

    # --- Filter ----------------------------------------------------------------------------

    def filter(
        self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo
    ) -> plugin.Status | None:
        """Reject the node unless one GPU has room for the share, or enough GPUs are free."""
        wanted = self.wanted(pod)
        return TOO_SMALL if wanted and not take(self.devices(node), wanted) else None

    def filter_columns(
        self,
        state: plugin.CycleState,
        pod: plugin.PodInfo,
        table: plugin.NodeTable,
        rows: plugin.Rows,
    ) -> plugin.Verdicts:
        """Return the results of `filter` for `rows`."""
        codes = lacking(self._columns(table)[rows], self.wanted(pod))
        return plugin.Verdicts(codes, (plugin.SUCCESS, TOO_SMALL))

    # --- Score -----------------------------------------------------------------------------

    def score(self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo) -> int:
        """Return 50 if the waste stays the same, more if it decreases, less if it increases."""
        rows = np.array([node.row])
        free = np.array([self.devices(node)], np.int64)
        return int(self._scores(pod, self._table, rows, free)[0])

    def score_columns(
        self,
        state: plugin.CycleState,
        pod: plugin.PodInfo,
        table: plugin.NodeTable,
        rows: plugin.Rows,
    ) -> plugin.Scores:
        """Return the results of `score` for `rows`."""
        return self._scores(pod, table, rows, self._columns(table)[rows])

    def _scores(
        self,
        pod: plugin.PodInfo,
        table: plugin.NodeTable,
        rows: plugin.Rows,
        free: Ints,
    ) -> plugin.Scores:
        cpu = table.allocatable[0, rows] - table.requested[0, rows]
        before = self._waste.of(free, cpu)
        after = self._waste.of(placed(free, self.wanted(pod)), cpu - pod.shape.milli_cpu)
        falls = before - after
        return 50 + 50 * falls // (abs(falls) + GPU)


class Waste:
    """Computes the waste of nodes for a workload."""

    def __init__(self, workload: Sequence[PodClass]) -> None:
        """Group the classes by request; for a class without GPUs, all free GPUs are waste."""
        self._pods = sum(one.pods for one in workload)
        asking = [one for one in workload if one.gpu_milli]
        self._useless = self._pods - sum(one.pods for one in asking)
        self._weight = np.array([one.pods for one in asking], np.int64)
        self._cpu = np.array([one.cpu_milli for one in asking], np.int64)
        wanted = np.array([one.gpu_milli for one in asking], np.int64)
        self._whole = np.where(wanted >= GPU, wanted // GPU, 0)
        self._shares, self._share = np.unique(np.minimum(wanted, GPU), return_inverse=True)

    def of(self, free: Ints, cpu: Ints) -> Ints:
        """Return the wasted milli GPUs of nodes with `free` GPUs [node, device] and free `cpu`."""
        total: Ints = free.sum(axis=1)
        if not free.shape[1] or not len(self._shares):
            return total
        fits = cpu[:, None] >= self._cpu
        fits &= free.max(axis=1)[:, None] >= self._shares[self._share]
        fits &= (free == GPU).sum(axis=1)[:, None] >= self._whole
        small = np.stack([np.where(free < share, free, 0).sum(axis=1) for share in self._shares])
        wasted = np.where(fits, small[self._share].T, total[:, None])
        sums: Ints = wasted @ self._weight + total * self._useless
        return sums // self._pods


def take(free: list[int], wanted: int) -> bool:
    """Take `wanted` from `free`: a share of the fullest GPU with enough room, or whole GPUs.

    If it does not fit, take as much as possible and return False.
    """
    if wanted >= GPU:
        whole = [at for at, left in enumerate(free) if left == GPU][: wanted // GPU]
        for at in whole:
            free[at] = 0
        return len(whole) == wanted // GPU
    fitting = [(left, at) for at, left in enumerate(free) if left >= wanted]
    if wanted and fitting:
        free[min(fitting)[1]] -= wanted
    return bool(fitting) or not wanted


def lacking(free: Ints, wanted: int) -> npt.NDArray[np.int32]:
    """Return 1 for each node whose GPUs have no room for `wanted`, otherwise 0."""
    if not wanted:
        return np.zeros(len(free), np.int32)
    usable = free == GPU if wanted >= GPU else free >= wanted
    devices: Ints = usable.sum(axis=1)
    return np.where(devices < max(wanted // GPU, 1), 1, 0).astype(np.int32)


def placed(free: Ints, wanted: int) -> Ints:
    """Return `free` after `take` on every node; `wanted` must fit all nodes."""
    if not wanted or not free.shape[1]:
        return free
    if wanted >= GPU:
        whole = free == GPU
        return np.where(whole & (np.cumsum(whole, axis=1) <= wanted // GPU), 0, free)
    after = free.copy()
    fullest = np.where(free >= wanted, free, 2 * GPU).argmin(axis=1)
    after[np.arange(len(free)), fullest] -= wanted
    return after
