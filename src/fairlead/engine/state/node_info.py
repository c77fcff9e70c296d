"""NodeInfo: one node and the sums over its pods."""

from __future__ import annotations

from fairlead.api.objects import Node
from fairlead.api.quantity import whole_value
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import (
    FIRST_SCALAR,
    PODS,
    ResourceColumns,
    allocatable_amount,
)
from fairlead.engine.state.shape import HostPort, Shape


class NodeInfo:
    """One node, with the sums over its pods.

    Mutable; only `NodeTable` writes it, and keeps its columns equal. `pods` maps `PodInfo.id` to
    pods.

    `allocatable` and `requested` are lists by resource column (see `ResourceColumns`), possibly
    shorter than the resource table: a missing entry is 0. Ports are a set, so removing one of two
    pods that share a port frees it, as in upstream's HostPortInfo.
    """

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "image_sizes",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "requested",
        "row",
        "used_ports",
    )

    def __init__(self, name: str, row: int) -> None:
        """Start without a Node object at `row`; `set_node` provides it."""
        self.name = name
        self.row = row
        self.pods: dict[str, PodInfo] = {}
        self.requested = [0] * FIRST_SCALAR
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.used_ports: dict[HostPort, None] = {}

    def set_node(self, node: Node, columns: ResourceColumns) -> None:
        """Store a new version of the Node object."""
        self.node = node
        self.labels = node.metadata.labels
        offered = node.status.allocatable
        for name in offered:
            if name != PODS:
                columns.column(name)
        self.allocatable = [allocatable_amount(name, offered) for name in columns.names]
        self.allowed_pods = whole_value(offered.get(PODS, 0))
        self.image_sizes = {
            name: image.size_bytes for image in node.status.images for name in image.names
        }

    def add_pod(self, pod: PodInfo) -> None:
        """Add `pod` to the sums. Undone by `remove_pod`."""
        self.pods[pod.id] = pod
        self._count(pod.shape, 1)
        for port in pod.shape.host_ports:
            self.used_ports[port] = None

    def remove_pod(self, pod: PodInfo) -> None:
        """Remove `pod` from the sums; the exact inverse of `add_pod`."""
        del self.pods[pod.id]
        self._count(pod.shape, -1)
        for port in pod.shape.host_ports:
            self.used_ports.pop(port, None)

    def _count(self, shape: Shape, sign: int) -> None:
        requested, load = self.requested, shape.load
        if load and load[-1][0] >= len(requested):
            requested.extend([0] * (load[-1][0] + 1 - len(requested)))
        for column, amount in load:
            requested[column] += sign * amount
        cpu, memory = shape.nonzero_load
        self.nonzero_cpu += sign * cpu
        self.nonzero_memory += sign * memory

    def requested_of(self, column: int) -> int:
        """Return how much of the resource in `column` the pods request."""
        return self.requested[column] if column < len(self.requested) else 0

    def allocatable_of(self, column: int) -> int:
        """Return how much of the resource in `column` is allocatable."""
        return self.allocatable[column] if column < len(self.allocatable) else 0

    def __repr__(self) -> str:
        """Return a short text, for failing tests."""
        return f"NodeInfo({self.name}, {len(self.pods)} pods)"
