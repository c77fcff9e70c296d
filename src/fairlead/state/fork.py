"""Fork: a hypothesis about where pods are, taken back unless it is committed.

    with fork(table) as hypothesis:
        hypothesis.remove_pod(node, victim)
        ...                      # ask the plugins
                                 # leaving reverts

Changes go to the real columns and are undone in reverse order, so asking costs what is changed
and every reader (row or vector) sees the hypothesis without knowing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.state.node_info import NodeInfo
from fairlead.state.node_table import NodeTable
from fairlead.state.pod_info import PodInfo


class Fork:
    """Records what is done so that it can be undone."""

    def __init__(self, table: NodeTable) -> None:
        """A hypothesis over `table`; use `fork()`."""
        self._table = table
        self._done: list[tuple[bool, NodeInfo, PodInfo]] = []

    def add_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Suppose `pod` were on `node`."""
        self._table.add_pod(node, pod, log=False)
        self._done.append((True, node, pod))

    def remove_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Suppose `pod` were gone from `node`."""
        self._table.remove_pod(node, pod, log=False)
        self._done.append((False, node, pod))

    def commit(self) -> None:
        """Make it so: nothing is left to revert, and the changed rows are logged."""
        for _, node, _ in self._done:
            self._table.pod_log.append(node.row)
        self._done.clear()

    def revert(self) -> None:
        """Undo everything since the start or the last commit."""
        while self._done:
            added, node, pod = self._done.pop()
            if added:
                self._table.remove_pod(node, pod, log=False)
            else:
                self._table.add_pod(node, pod, log=False)


@contextmanager
def fork(table: NodeTable) -> Iterator[Fork]:
    """A hypothesis that ends with the block; see the module's docstring."""
    hypothesis = Fork(table)
    try:
        yield hypothesis
    finally:
        hypothesis.revert()
