"""AddedNodes: the free resources of the new nodes of an estimation, all from one template.

AddedNodes is used only for pods that fit a new node whenever the node has enough free resources.
For these pods, arithmetic gives the same result as a simulation.

Example: nodes with 4 cores, ten pods of 1 core. The pods fill two nodes and half of a third node,
which keeps 2 free cores. If pods of 2 cores follow, one of them still fits the third node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

_NO_LIMIT: Final = 1 << 62


class AddedNodes:
    """The free resources of new nodes, and the pods on each node in order of placement."""

    def __init__(self, empty: NodeInfo) -> None:
        """Start without nodes; each new node has the free resources of `empty`."""
        offered, used = empty.allocatable, empty.requested
        width = max(len(offered), len(used))
        self._empty = [_at(offered, column) - _at(used, column) for column in range(width)]
        self._slots = empty.allowed_pods - len(empty.pods)
        self._free: list[list[int]] = []
        self._free_slots: list[int] = []
        self.pods: list[list[PodInfo]] = []

    def add(self) -> None:
        """Add an empty node."""
        self._free.append(list(self._empty))
        self._free_slots.append(self._slots)
        self.pods.append([])

    def room(self, shape: Shape, node: int) -> int:
        """Return how many more pods of `shape` fit the new node with index `node`.

        Pods with equal specs share a `Shape`.
        """
        free, found = self._free[node], self._free_slots[node]
        load = dict(shape.load)
        for column, amount in shape.wanted:
            left = _at(free, column) - amount
            if left < 0:
                return 0
            each = load.get(column, 0)
            found = min(found, left // each + 1 if each else _NO_LIMIT)
        return max(found, 0)

    def place(self, pods: Sequence[PodInfo], node: int) -> None:
        """Put `pods`, which have equal specs, on the new node with index `node`.

        The node must have room for all of them.
        """
        free, count = self._free[node], len(pods)
        for column, amount in pods[0].shape.load:
            if column >= len(free):
                free += [0] * (column + 1 - len(free))
            free[column] -= amount * count
        self._free_slots[node] -= count
        self.pods[node] += pods

    def place_round_robin(self, pods: Sequence[PodInfo], first: int) -> list[int]:
        """Place `pods`, which have equal specs, one by one, each on the next node with room.

        Return the node index of each placed pod. The search for the first pod starts at the node
        with index `first`. Each later search starts after the node of the previous pod. Placement
        ends at the first pod that fits no node.
        """
        shape, count = pods[0].shape, len(self.pods)
        order = (*range(first, count), *range(first))
        open_nodes = deque((node, room) for node in order if (room := self.room(shape, node)))
        found: list[int] = []
        while open_nodes and len(found) < len(pods):
            node, room = open_nodes.popleft()
            found.append(node)
            if room > 1:
                open_nodes.append((node, room - 1))
        for node, chosen in _by_node(found, pods):
            self.place(chosen, node)
        return found


def _at(amounts: Sequence[int], column: int) -> int:
    return amounts[column] if column < len(amounts) else 0


def _by_node(found: Sequence[int], pods: Sequence[PodInfo]) -> Iterator[tuple[int, list[PodInfo]]]:
    chosen: dict[int, list[PodInfo]] = {}
    for node, pod in zip(found, pods, strict=False):
        chosen.setdefault(node, []).append(pod)
    yield from chosen.items()
