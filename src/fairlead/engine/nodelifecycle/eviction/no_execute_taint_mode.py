"""NoExecuteTaintMode: taints nodes that are not ready, at the rate of their zone.

    no taint yet      queue the node in its zone; when the rate limiter accepts it, add the taint
    opposite taint    swap the taints immediately: add the new taint, then remove the old one
    ready again       the next pass removes both taints

The not-ready taint and the unreachable taint are opposites: a node should have only one of them. If
`requeues` is set, each pass gives every not-ready node without a taint a new entry in the queue. So
the node's place in the queue depends on the time of the last pass, not on the time of the node's
failure.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:processTaintBaseEviction,
markNodeForTainting, markNodeAsReachable, doNoExecuteTaintingPass
"""

from __future__ import annotations

from typing import Final

from fairlead.api.nodes.readiness import ready_condition
from fairlead.api.objects import Node
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.nodelifecycle.eviction.mode import Observation
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.node_edit import (
    FindNode,
    TaintNoExecute,
    UntaintNoExecute,
    has_no_execute,
)
from fairlead.engine.nodelifecycle.node_writer import NodeWriter
from fairlead.engine.nodelifecycle.well_known import (
    NOT_READY,
    OPPOSITE_TAINT,
    TAINT_OF_STATUS,
    UNREACHABLE,
)
from fairlead.engine.nodelifecycle.zones.zone_queues import ZoneQueues

NO_CONDITION_RETRY: Final = seconds(0.05)


class NoExecuteTaintMode:
    """The eviction mode since 1.13: adds NoExecute taints to not-ready nodes."""

    def __init__(
        self, queues: ZoneQueues, writer: NodeWriter, find: FindNode, *, requeues: bool
    ) -> None:
        """Taints are written through `writer`. `find` returns the newest version of a node.

        If `requeues` is set, each pass queues a not-ready node again until the node has its taint.
        """
        self._queues = queues
        self._writer = writer
        self._find = find
        self._requeues = requeues

    @property
    def queues(self) -> ZoneQueues:
        """The queues of nodes that wait for a taint, by zone."""
        return self._queues

    def on_not_ready(self, seen: Observation) -> list[Command]:
        """Queue the node for the NoExecute taint of `seen.status`, or swap its taint now.

        If the node has the opposite taint (not-ready instead of unreachable, or vice versa), return
        the writes that swap the taints. Otherwise, queue the node and return [].
        """
        key = TAINT_OF_STATUS[seen.status]
        queue = self._queues[seen.zone]
        if has_no_execute(seen.node, OPPOSITE_TAINT[key]):
            queue.stop_requeuing(seen.name, seen.last_pass)
            return self._taint(seen.node, TaintNoExecute(key, is_rate_limited=False), seen.now)
        if self._requeues and not has_no_execute(seen.node, key):
            queue.requeue_each_pass(seen.name)
        else:
            queue.stop_requeuing(seen.name, seen.last_pass)
            queue.add(seen.name, seen.now)
        return []

    def on_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """Remove the node from its queue; return the writes that remove its NoExecute taints.

        The removed taints are `not-ready` and `unreachable`.
        """
        name = node.metadata.name
        self._queues[zone].remove(name)
        edits = tuple(
            UntaintNoExecute(key) for key in (UNREACHABLE, NOT_READY) if has_no_execute(node, key)
        )
        return self._writer.submit(name, edits, now) if edits else []

    def next_check(self, status: str, health: NodeHealth) -> Instant | None:
        """Return None, because time alone never requires a taint."""
        return None

    def process(self, zone: str, name: str, now: Instant) -> list[Command]:
        """Add the taint for the node's current Ready status; remove the taint for the other status.

        The two taints are `not-ready` (for False) and `unreachable` (for Unknown).

        If the node has no Ready condition, the node is processed again after NO_CONDITION_RETRY.
        """
        queue, node = self._queues[zone], self._find(name)
        ready = None if node is None else ready_condition(node)
        if node is not None and ready is None:
            queue.retry(name, now + NO_CONDITION_RETRY + 1)
            return []
        queue.finish(name)
        key = TAINT_OF_STATUS.get(ready.status) if ready is not None else None
        if node is None or key is None:
            return []
        return self._taint(node, TaintNoExecute(key, is_rate_limited=True), now)

    def _taint(self, node: Node, taint: TaintNoExecute, now: Instant) -> list[Command]:
        edits = (taint, UntaintNoExecute(OPPOSITE_TAINT[taint.key]))
        return self._writer.submit(node.metadata.name, edits, now)
