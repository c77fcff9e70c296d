"""ClusterHistoryRecorder: records the states of nodes, and the times at which pods occupied them.

A pod occupies a node from its binding until it completes or is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.run_outcome import (
    ClusterHistory,
    NodeStatusChange,
    PlacementChange,
    PodEnd,
)
from fairlead.whatif.run.capacity.allocation import nodes_at_end

PLACEMENTS_MAX: Final = 100_000  # a report with more changes would be too large for a browser


class ClusterHistoryRecorder(Struct):
    """Records the history of one run; `is_loading` is set while the initial state is recorded.

    If there are more than `placements_max` changes of placements, the history is None.
    """

    is_loading: bool = False
    placements_max: int = PLACEMENTS_MAX
    _placements: list[tuple[Instant, str, str, bool]] = field(default_factory=list)
    _node_of: dict[str, str] = field(default_factory=dict)  # {uid of a pod: its node}
    _statuses: dict[str, list[NodeStatusChange]] = field(default_factory=lambda: defaultdict(list))
    _deleted: dict[str, Node] = field(default_factory=dict)
    # {node: uids of its pods}; None until a node is deleted, because most runs never need it
    _pods_on: dict[str, dict[str, None]] | None = None

    def place(self, uid: str, node: str, at: Instant) -> None:
        """Record that the pod `uid` occupies `node` from the instant `at` on; "" means no node."""
        before = self._node_of.get(uid, "")
        if node in self._deleted:
            node = ""
        if before == node:
            return
        if node:
            self._node_of[uid] = node
        else:
            del self._node_of[uid]
        if self._pods_on is not None:
            if before:
                del self._pods_on[before][uid]
            if node:
                self._pods_on.setdefault(node, {})[uid] = None
        if self.is_loading or len(self._placements) > self.placements_max:
            return
        if before:
            self._placements.append((at, before, uid, False))
        if node:
            self._placements.append((at, node, uid, True))

    def load(self, uids: Sequence[str], nodes: Sequence[str]) -> None:
        """Record that, at the start, the pod `uids[i]` is on the node `nodes[i]`, for each `i`."""
        if self._pods_on is not None or not self._node_of.keys().isdisjoint(uids):
            for uid, node in zip(uids, nodes, strict=True):
                self.place(uid, node, 0)
        else:
            self._node_of.update(zip(uids, nodes, strict=True))

    def update_node(self, node: Node, at: Instant, *, is_serving: bool) -> None:
        """Record the state of an existing node."""
        self._deleted.pop(node.metadata.name, None)
        unschedulable = node.spec.unschedulable
        self._add(NodeStatusChange(at, node.metadata.name, True, is_serving, unschedulable))  # noqa: FBT003

    def delete_node(self, node: Node, at: Instant) -> None:
        """Record that `node` is deleted; its pods no longer occupy it."""
        name = node.metadata.name
        if self._pods_on is None:
            self._pods_on = {}
            for uid, on in self._node_of.items():
                self._pods_on.setdefault(on, {})[uid] = None
        for uid in list(self._pods_on.get(name, ())):
            self.place(uid, "", at)
        self._deleted[name] = node
        self._add(_absent(name, at))

    def _add(self, status: NodeStatusChange) -> None:
        statuses = self._statuses[status.node]
        if not statuses and not self.is_loading:
            statuses.append(_absent(status.node, 0))  # the node was created during the run
        if statuses and replace(status, at=statuses[-1].at) == statuses[-1]:
            return
        statuses.append(status)

    def history(self, since: Instant, end_of: Callable[[str], PodEnd]) -> ClusterHistory | None:
        """Return the history from `since` on; None if it has too many changes of placements.

        `end_of` returns the PodEnd of a pod by its uid.
        """
        if len(self._placements) > self.placements_max:
            return None
        statuses = sorted(self._statuses_from(since), key=lambda one: one.at)
        changed = {one.node for one in statuses}
        deleted = {name: node for name, node in self._deleted.items() if name in changed}
        # A node that was deleted before the history, or at its first instant, is not in it.
        known = self._statuses.keys() - (self._deleted.keys() - deleted.keys())
        return ClusterHistory(
            placements=tuple(
                PlacementChange(at, node, end_of(uid), is_arrival)
                for at, node, uid, is_arrival in self._placements
                if at >= since and node in known  # a pod can name a missing node
            ),
            statuses=tuple(statuses),
            deleted=nodes_at_end(deleted, ()),
            out_of_service=tuple(
                name
                for name, of_node in sorted(self._statuses.items())
                if of_node[-1].exists and not of_node[-1].is_serving
            ),
        )

    def _statuses_from(self, since: Instant) -> Iterator[NodeStatusChange]:
        """Yield the statuses at and after `since` of each node that changed after `since`."""
        for of_node in self._statuses.values():
            later = [one for one in of_node if one.at > since]
            if later:
                yield replace(of_node[-len(later) - 1], at=since)
                yield from later


def _absent(name: str, at: Instant) -> NodeStatusChange:
    return NodeStatusChange(at, name, exists=False, is_serving=False, unschedulable=False)
