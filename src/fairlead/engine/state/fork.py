"""Fork: hypothetical changes of pod placement, which are reverted if they are not committed.

    with fork(table) as hypothesis:
        hypothesis.remove_pod(node, victim)
        ...                      # call the plugins
                                 # the end of the block reverts the changes

Changes are made to the real columns, so all readers of rows and columns see them. The changes are
undone one by one, in reverse order. So the cost of a revert is proportional to the number of
changes. Only the used host ports of a node are restored from a copy, because undoing the changes
might not restore the host ports. If two pods on the node use the same port, removing one of these
pods frees the port.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import HostPort


class Fork:
    """Adds and removes pods hypothetically, and reverts these changes."""

    def __init__(self, table: NodeTable) -> None:
        """Start without changes of the pods in `table`; only `fork()` calls this."""
        self._table = table
        self._done: list[tuple[bool, NodeInfo, PodInfo]] = []
        self._ports: dict[int, tuple[NodeInfo, dict[HostPort, None]]] = {}

    def add_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Add `pod` to `node` hypothetically."""
        self._keep_ports(node, pod)
        self._table.add_pod(node, pod, log=False)
        self._done.append((True, node, pod))

    def remove_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Remove `pod` from `node` hypothetically."""
        self._keep_ports(node, pod)
        self._table.remove_pod(node, pod, log=False)
        self._done.append((False, node, pod))

    def _keep_ports(self, node: NodeInfo, pod: PodInfo) -> None:
        if pod.shape.host_ports and node.row not in self._ports:
            self._ports[node.row] = (node, dict(node.used_ports))

    def commit(self) -> None:
        """Make the changes permanent, and log the rows of the changed nodes."""
        for _, node, _ in self._done:
            self._table.pod_log.append(node.row)
        self._done.clear()
        self._ports.clear()

    def revert(self) -> None:
        """Undo all changes made since the last `commit`, or since the start if there was none."""
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
    """Yield a Fork; the end of the `with` block reverts changes that are not committed."""
    hypothesis = Fork(table)
    try:
        yield hypothesis
    finally:
        hypothesis.revert()
