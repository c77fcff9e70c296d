"""TaintToleration: rejects nodes with untolerated taints (plugins/tainttoleration).

NoSchedule and NoExecute taints reject the node. PreferNoSchedule taints only lower its score.
tolerationSeconds has no effect here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from fairlead.api.nodes.taint import count_intolerable_prefer_no_schedule, find_untolerated
from fairlead.api.objects import Node
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Normalization, Rows, Scores, Verdicts
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

UNTOLERATED: Final = unresolvable("node(s) had untolerated taint(s)").by("TaintToleration")
REJECTING: Final = ("NoSchedule", "NoExecute")


class TaintToleration:
    """Rejects or avoids nodes with taints that the pod does not tolerate (Filter, Score)."""

    name = "TaintToleration"
    locality = Locality.NODE
    events = frozenset({EventKind.NODE_ADD, EventKind.NODE_TAINT, EventKind.POD_TOLERATION})
    wakes_alike = True
    normalization = Normalization.REVERSED

    def shape_key(self, shape: Shape) -> Hashable:
        """Return the tolerations, the only part of a `Shape` that this plugin reads."""
        return shape.spec.tolerations

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        taints = node.node.spec.taints
        if not taints:
            return None
        untolerated = find_untolerated(taints, pod.shape.spec.tolerations, REJECTING)
        return None if untolerated is None else UNTOLERATED

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the number of untolerated PreferNoSchedule taints; fewer is better."""
        taints = node.node.spec.taints
        if not taints:
            return 0
        return count_intolerable_prefer_no_schedule(taints, pod.shape.spec.tolerations)

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        codes = by_taints(table, rows, lambda node: self.filter(state, pod, node) is not None)
        return Verdicts(codes.astype(np.int32), (UNTOLERATED, UNTOLERATED))

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable.

        The result is True in the following cases:
        - A node was added, and the pod tolerates its taints.
        - A node was changed, and the pod tolerates its current taints but not its former taints.
        - The pod itself was changed.
        """
        old, new = event.old, event.new
        if not isinstance(new, Node):
            return True
        tolerations = pod.shape.spec.tolerations
        if find_untolerated(new.spec.taints, tolerations, REJECTING) is not None:
            return False
        if not isinstance(old, Node):
            return True
        return find_untolerated(old.spec.taints, tolerations, REJECTING) is not None

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        return by_taints(table, rows, lambda node: self.score(state, pod, node))


def by_taints(table: NodeTable, rows: Rows, value_of: Callable[[NodeInfo], int]) -> Scores:
    """Return the value of each node in `rows`, a number that depends only on the node's taints.

    `value_of` is called for one node of each group of nodes with the same `taint_ids`. The value of
    nodes without taints is 0.
    """
    ids = table.values(table.taint_ids, rows)
    if not np.count_nonzero(ids):
        return np.zeros(len(rows), np.int64)
    distinct, first, group = np.unique(ids, return_index=True, return_inverse=True)
    values = [
        value_of(table.at(int(rows[at]))) if taints else 0
        for taints, at in zip(distinct.tolist(), first.tolist(), strict=True)
    ]
    return np.array(values, np.int64)[group]
