"""NoExecuteTainting: taints unready nodes at their zone's rate.

    first time     wait in the zone's queue; on its turn the node gets the taint of its condition
    other taint    exchanged at once, not limited: first the new one is added, then the old removed
    ready again    both taints are removed by the next pass

The two taints exclude each other. A pass queues every unready node whose taint is missing anew, so
who comes first is decided by the last pass, not by who failed first.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:processTaintBaseEviction,
markNodeForTainting, markNodeAsReachable, doNoExecuteTaintingPass
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.nodelifecycle.eviction import Sighting
from fairlead.engine.nodelifecycle.node_edit import (
    FindNode,
    TaintNoExecute,
    UntaintNoExecute,
    has_no_execute,
)
from fairlead.engine.nodelifecycle.node_health import NodeHealth
from fairlead.engine.nodelifecycle.node_writes import NodeWrites
from fairlead.engine.nodelifecycle.well_known import (
    NOT_READY,
    OPPOSITE,
    TAINT_OF_STATUS,
    UNREACHABLE,
    ready_condition,
)
from fairlead.engine.nodelifecycle.zone_queues import ZoneQueues

NO_CONDITION_RETRY: Final = seconds(0.05)


class NoExecuteTainting:
    """The mode of today."""

    def __init__(
        self, queues: ZoneQueues, writes: NodeWrites, find: FindNode, *, requeues: bool
    ) -> None:
        """`requeues`: a pass queues an unready node anew while its taint is missing."""
        self._queues = queues
        self._writes = writes
        self._find = find
        self._requeues = requeues

    @property
    def queues(self) -> ZoneQueues:
        """The nodes that wait for a taint."""
        return self._queues

    def see_unready(self, seen: Sighting) -> list[Command]:
        """Exchange the other taint, or wait for a turn."""
        key = TAINT_OF_STATUS[seen.status]
        queue = self._queues[seen.zone]
        if has_no_execute(seen.node, OPPOSITE[key]):
            queue.let_age(seen.name, seen.last_pass)
            return self._taint(seen.node, TaintNoExecute(key, is_turn=False), seen.now)
        if self._requeues and not has_no_execute(seen.node, key):
            queue.keep_fresh(seen.name)
        else:
            queue.let_age(seen.name, seen.last_pass)
            queue.add(seen.name, seen.now)
        return []

    def see_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """Take both taints off."""
        name = node.metadata.name
        self._queues[zone].remove(name)
        edits = tuple(
            UntaintNoExecute(key) for key in (UNREACHABLE, NOT_READY) if has_no_execute(node, key)
        )
        return self._writes.submit(name, edits, now) if edits else []

    def reconsider_at(self, status: str, health: NodeHealth) -> Instant | None:
        """Never: time alone changes nothing."""
        return None

    def take_turn(self, zone: str, name: str, now: Instant) -> list[Command]:
        """Taint the node by its present condition."""
        queue, node = self._queues[zone], self._find(name)
        ready = None if node is None else ready_condition(node)
        if node is not None and ready is None:
            queue.retry(name, now + NO_CONDITION_RETRY + 1)
            return []
        queue.finish(name)
        key = TAINT_OF_STATUS.get(ready.status) if ready is not None else None
        if node is None or key is None:
            return []
        return self._taint(node, TaintNoExecute(key, is_turn=True), now)

    def _taint(self, node: Node, taint: TaintNoExecute, now: Instant) -> list[Command]:
        edits = (taint, UntaintNoExecute(OPPOSITE[taint.key]))
        return self._writes.submit(node.metadata.name, edits, now)
