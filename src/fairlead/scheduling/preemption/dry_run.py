"""dry_run_preemption: what every node where it might help would cost.

A node's answer depends on the pod's shape and priority, the node and its pods, the budgets, and
the room promised to others there. So answers are kept per shape and priority, and only nodes that
changed are asked again, as long as no Filter looks beyond the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.api.objects import PodDisruptionBudget
from fairlead.core.status import Status
from fairlead.framework.interface import Rows
from fairlead.framework.runtime import Framework
from fairlead.scheduling.feasibility import Feasibility
from fairlead.scheduling.plan_cache import PlanCache
from fairlead.scheduling.preemption.candidate import Candidate
from fairlead.scheduling.preemption.candidate_columns import CandidateColumns
from fairlead.scheduling.preemption.victims import select_victims_on_node
from fairlead.state.pod_info import PodInfo

_CACHES_MAX: Final = 32


@dataclass(slots=True)
class DryRun:
    """`columns` hold the candidates by row, `rejected` why other potential nodes are none."""

    columns: CandidateColumns
    potential: Rows

    def candidates(self) -> list[Candidate]:
        """All candidates, by row."""
        return [self.columns.candidate(row) for row in self.columns.rows(self.potential)]

    def rejected(self) -> list[tuple[int, Status]]:
        """(row, why) of the potential nodes that are no candidates."""
        found = []
        for row in self.potential.tolist():
            answer = self.columns.answers[row]
            if isinstance(answer, Status):
                found.append((row, answer))
        return found


class _Cached:
    """The answers for one shape and priority, and what they were computed from."""

    def __init__(self) -> None:
        self.columns: CandidateColumns | None = None
        self.node_position = 0
        self.pod_position = 0
        self.budget_version = -1


class DryRuns:
    """The dry runs of one profile."""

    def __init__(self, plans: PlanCache) -> None:
        """Asks the Filter plugins of `plans`' framework."""
        self._plans = plans
        self._cached: dict[tuple[int, int], _Cached] = {}

    def dry_run_preemption(
        self, pod: PodInfo, found: Feasibility, potential: Sequence[int]
    ) -> DryRun:
        """Ask every row in `potential` (ascending)."""
        framework = self._plans.framework
        rows = np.array(potential, np.int64)
        budgets = framework.cluster.budgets()
        promised = self._promised_rows(framework)
        if self._looks_beyond_the_node(found):
            columns = CandidateColumns(framework.cluster.table.capacity)
            self._ask(pod, found, rows.tolist(), budgets, columns)
            return DryRun(columns, rows)
        columns = self._current(pod)
        self._ask(pod, found, rows[columns.unknown[rows]].tolist(), budgets, columns)
        again = [row for row in promised if row in set(potential)]
        self._ask(pod, found, again, budgets, columns)
        for row in again:
            columns.unknown[row] = True  # true for now, but not for another pod or moment
        return DryRun(columns, rows)

    def _promised_rows(self, framework: Framework) -> list[int]:
        table = framework.cluster.table
        nodes = (table.find(name) for name in framework.nominator.nodes())
        return sorted(node.row for node in nodes if node is not None)

    def _looks_beyond_the_node(self, found: Feasibility) -> bool:
        skipped = found.state.skipped_filters
        return any(p.name not in skipped for p in self._plans.split.cluster_filters)

    def _current(self, pod: PodInfo) -> CandidateColumns:
        """The cached columns, with what changed marked unknown."""
        cluster = self._plans.framework.cluster
        table = cluster.table
        key = (pod.shape.id, pod.priority)
        cached = self._cached.pop(key, None) or _Cached()
        self._cached[key] = cached
        while len(self._cached) > _CACHES_MAX:
            del self._cached[next(iter(self._cached))]
        nodes = table.node_log.since(cached.node_position)
        pods = table.pod_log.since(cached.pod_position)
        columns = cached.columns
        stale = nodes is None or pods is None or cached.budget_version != cluster.related.budget_version
        if columns is None or stale or len(columns.unknown) != table.capacity:
            columns = cached.columns = CandidateColumns(table.capacity)
        else:
            columns.unknown[(nodes or []) + (pods or [])] = True
        cached.node_position = table.node_log.position
        cached.pod_position = table.pod_log.position
        cached.budget_version = cluster.related.budget_version
        return columns

    def _ask(
        self,
        pod: PodInfo,
        found: Feasibility,
        rows: list[int],
        budgets: Sequence[PodDisruptionBudget],
        columns: CandidateColumns,
    ) -> None:
        framework = self._plans.framework
        table = framework.cluster.table
        for row in rows:
            node = table.at(row)
            answer = select_victims_on_node(framework, found.state, pod, node, budgets)
            columns.put(row, answer)
