"""NodeResourcesFit: what the pod asks for is free on the node (plugins/noderesources/fit.go).

Filter names every resource that is short. The verdict cannot be resolved by removing pods when
the node could not hold the pod even if it were empty.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from fairlead.core.status import Code, Status, unschedulable
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import Locality, Rows, Scores, Verdicts
from fairlead.framework.runtime import Handle
from fairlead.plugins.resource_scoring import FitArgs, scoring_strategy
from fairlead.state.node_info import NodeInfo
from fairlead.state.node_table import NodeTable
from fairlead.state.pod_info import PodInfo
from fairlead.state.resource_columns import FIRST_SCALAR

NAME: Final = "NodeResourcesFit"
TOO_MANY_PODS: Final = "Too many pods"
_NO_ROOM_FOR_PODS: Final = unschedulable(TOO_MANY_PODS).by(NAME)


class NodeResourcesFit:
    """PreFilter, Filter, Score (never skipped)."""

    name = NAME
    locality = Locality.ROW

    def __init__(self, handle: Handle, args: FitArgs | None = None) -> None:
        """`args` are the plugin's NodeResourcesFitArgs."""
        self._resources = handle.cluster.table.resources
        strategy = scoring_strategy(args or FitArgs(), handle)
        self.score = strategy.score
        self.score_columns = strategy.score_columns
        self._args = args or FitArgs()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """None where the pod fits."""
        wanted = pod.shape.wanted
        requested, allocatable = node.requested, node.allocatable
        short: list[int] = []
        beyond = False
        for column, amount in wanted:
            offered = allocatable[column] if column < len(allocatable) else 0
            used = requested[column] if column < len(requested) else 0
            if amount > offered - used and not self._is_ignored(column):
                short.append(column)
                beyond = beyond or amount > offered
        crowded = len(node.pods) + 1 > node.allowed_pods
        if not short and not crowded:
            return None
        return self._rejection(crowded, tuple(short), beyond)

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """`filter` over `rows`.

        Codes are bit sets first: bit 0 too many pods, bit 1 beyond allocatable, bit 2 + i the
        i-th wanted resource is short; then numbered.
        """
        bits = (table.pod_count[rows] + 1 > table.allowed_pods[rows]).astype(np.int64)
        wanted = [entry for entry in pod.shape.wanted if not self._is_ignored(entry[0])]
        for i, (column, amount) in enumerate(wanted):
            offered = table.allocatable[column, rows]
            short = amount > offered - table.requested[column, rows]
            bits |= short * (4 << i) | (short & (amount > offered)) * 2
        distinct, codes = np.unique(bits, return_inverse=True)
        if distinct[0]:
            distinct, codes = np.concatenate(([0], distinct)), codes + 1
        statuses = [self._decode(int(mask), wanted) for mask in distinct]
        return Verdicts(codes.astype(np.int32), statuses)

    def _decode(self, mask: int, wanted: list[tuple[int, int]]) -> Status:
        short = tuple(column for i, (column, _) in enumerate(wanted) if mask & (4 << i))
        return self._rejection(bool(mask & 1), short, bool(mask & 2))

    def _rejection(self, crowded: bool, short: tuple[int, ...], beyond: bool) -> Status:
        names = tuple(self._resources.names[column] for column in short)
        fixed = sum(column < FIRST_SCALAR for column in short)
        return rejection(crowded, names[:fixed], tuple(sorted(names[fixed:])), beyond)

    def _is_ignored(self, column: int) -> bool:
        if column < FIRST_SCALAR or not self._args.ignores_anything:
            return False
        return self._args.ignores(self._resources.names[column])


@lru_cache(maxsize=4096)
def rejection(
    crowded: bool, fixed: tuple[str, ...], scalars: tuple[str, ...], beyond: bool
) -> Status:
    """The verdict that names all resources that are short, in upstream's order."""
    reasons = (TOO_MANY_PODS,) if crowded else ()
    reasons += tuple(f"Insufficient {name}" for name in (*fixed, *scalars))
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if beyond else Code.UNSCHEDULABLE
    return Status(code, reasons, NAME)
