"""Fork: a hypothesis about where pods are, taken back unless it is committed.

    with fork(table) as hypothesis:
        hypothesis.remove_pod(node, victim)
        ...                      # ask the plugins
                                 # leaving reverts

Changes go to the real columns and are undone in reverse order, so asking costs what is changed
and every reader (row or vector) sees the hypothesis without knowing of it. Used host ports are put
back as they were: they are a set, so taking out one of two pods that share a port loses it, and the
inverse operation could not tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import HostPort


class Fork:
    """Records what is done so that it can be undone."""

    def __init__(self, table: NodeTable) -> None:
        """A hypothesis over `table`; use `fork()`."""
        self._table = table
        self._done: list[tuple[bool, NodeInfo, PodInfo]] = []
        self._ports: dict[int, tuple[NodeInfo, dict[HostPort, None]]] = {}

    def add_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Suppose `pod` were on `node`."""
        self._keep_ports(node, pod)
        self._table.add_pod(node, pod, log=False)
        self._done.append((True, node, pod))

    def remove_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Suppose `pod` were gone from `node`."""
        self._keep_ports(node, pod)
        self._table.remove_pod(node, pod, log=False)
        self._done.append((False, node, pod))

    def _keep_ports(self, node: NodeInfo, pod: PodInfo) -> None:
        if pod.shape.host_ports and node.row not in self._ports:
            self._ports[node.row] = (node, dict(node.used_ports))

    def commit(self) -> None:
        """Make it so: nothing is left to revert, and the changed rows are logged."""
        for _, node, _ in self._done:
            self._table.pod_log.append(node.row)
        self._done.clear()
        self._ports.clear()

    def revert(self) -> None:
        """Undo everything since the start or the last commit."""
        while self._done:
            added, node, pod = self._done.pop()
            if added:
                self._table.remove_pod(node, pod, log=False)
            else:
                self._table.add_pod(node, pod, log=False)
        for node, ports in self._ports.values():
            node.used_ports = ports
        self._ports.clear()


@contextmanager
def fork(table: NodeTable) -> Iterator[Fork]:
    """A hypothesis that ends with the block; see the module's docstring."""
    hypothesis = Fork(table)
    try:
        yield hypothesis
    finally:
        hypothesis.revert()
