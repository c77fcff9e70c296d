"""TaintToleration and NodeAffinity of 1.19, whose rejection reasons differ from current reasons.

The reason of TaintToleration contains the taint, so messages count nodes with different taints
separately.
upstream: v1.19 tainttoleration/taint_toleration.go: Filter, nodeaffinity/node_affinity.go: Filter
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.api.nodes.taint import find_untolerated
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Rows, Verdicts
from fairlead.engine.plugins.node_affinity import MISMATCH, NodeAffinity
from fairlead.engine.plugins.taint_toleration import REJECTING, TaintToleration, by_taints
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

_UNMATCHED: Final = unresolvable("node(s) didn't match node selector").by(NodeAffinity.name)


class NamedTaintToleration(TaintToleration):
    """TaintToleration whose reason names the first taint that the pod does not tolerate."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        tolerations = pod.shape.spec.tolerations
        taint = find_untolerated(node.node.spec.taints, tolerations, REJECTING)
        if taint is None:
            return None
        reason = f"node(s) had taint {{{taint.key}: {taint.value}}}, that the pod didn't tolerate"
        return unresolvable(reason).by(TaintToleration.name)

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        statuses: dict[Status, int] = {}

        def code_of(node: NodeInfo) -> int:
            status = self.filter(state, pod, node)
            return 0 if status is None else statuses.setdefault(status, len(statuses) + 1)

        codes = by_taints(table, rows, code_of)
        return Verdicts(codes.astype(np.int32), (_UNMATCHED, *statuses))


class SelectorNodeAffinity(NodeAffinity):
    """NodeAffinity, but it rejects with 1.19's reason "node(s) didn't match node selector"."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node that does not match the pod's node selector or required affinity."""
        status = super().filter(state, pod, node)
        return _UNMATCHED if status is MISMATCH else status

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        found = super().filter_columns(state, pod, table, rows)
        statuses = tuple(_UNMATCHED if one is MISMATCH else one for one in found.statuses)
        return Verdicts(found.codes, statuses)
