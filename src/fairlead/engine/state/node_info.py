"""NodeInfo: one node and the sums of its pods' requests."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from fairlead.api.lazy_dict import LazyDict
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
    """One node, with the sums of its pods' requests.

    Only `NodeTable` changes a NodeInfo, and writes the same values to the columns of the table.
    `pods` maps `PodInfo.id` to pods. `pods` is a read-only view of `stored_pods`, because users'
    plugins can access it. `stored_pods` may be a LazyDict.

    `allocatable` and `requested` are lists by resource column (see `ResourceColumns`). A list may
    be shorter than the number of resources: a missing entry is 0. `used_ports` is a set. If two
    pods share a port, removing one of these pods frees the port, as in upstream's HostPortInfo.
    `capacity` is an id. Nodes with the same id have equal `allocatable` and `allowed_pods`.
    """

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "capacity",
        "image_sizes",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "requested",
        "row",
        "stored_pods",
        "used_ports",
    )

    def __init__(self, name: str, row: int) -> None:
        """Start without a Node object; `row` is the node's row in the node table."""
        self.name = name
        self.row = row
        self.capacity = 0
        self._store({})
        self.requested = [0] * FIRST_SCALAR
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.used_ports: dict[HostPort, None] = {}

    def _store(self, pods: dict[str, PodInfo]) -> None:
        self.stored_pods = pods
        self.pods = MappingProxyType(pods)

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
        """Add `pod` and its requests; `remove_pod` undoes this."""
        self.stored_pods[pod.id] = pod
        self._count(pod.shape, 1)
        for port in pod.shape.host_ports:
            self.used_ports[port] = None

    def lazy_pods(self, make: Callable[[Any, int], PodInfo]) -> LazyDict[PodInfo]:
        """Convert `stored_pods` to a LazyDict, and return the LazyDict.

        Each entry of the LazyDict is a pod, or a tuple (group, index). When a tuple is read for the
        first time, `make(group, index)` builds the pod, which replaces the tuple.
        """
        if isinstance(self.stored_pods, LazyDict):
            return self.stored_pods
        lazy = LazyDict(make)
        lazy.update(self.stored_pods)
        self._store(lazy)
        return lazy

    def remove_pod(self, pod: PodInfo) -> None:
        """Undo `add_pod`; a host port is freed even if another pod on the node uses it."""
        del self.stored_pods[pod.id]
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
        """Return the amount that the node's pods request of the resource in `column`."""
        return self.requested[column] if column < len(self.requested) else 0

    def free_of(self, column: int) -> int:
        """Return the amount of the resource in `column` that the node's pods leave free."""
        offered, requested = self.allocatable, self.requested
        used = requested[column] if column < len(requested) else 0
        return (offered[column] if column < len(offered) else 0) - used

    def allocatable_of(self, column: int) -> int:
        """Return the allocatable amount of the resource in `column`."""
        return self.allocatable[column] if column < len(self.allocatable) else 0

    def __repr__(self) -> str:
        """Return a short text for the messages of failing tests."""
        return f"NodeInfo({self.name}, {len(self.pods)} pods)"
