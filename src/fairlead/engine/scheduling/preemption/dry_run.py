"""dry_run_preemption: evaluates preemption on every node where it might help.

The result for a node depends on the pod's shape and priority, the node and its pods, the disruption
budgets, and the pods nominated to the node. Results are cached per shape and priority, and only
changed nodes are evaluated again. With topology spread or pod affinity, a result also depends on
the pod's namespace and labels, on the pods of all nodes, and on related objects. Such results are
cached until any of these changes. If anti-affinity is the only rule that depends on other nodes, a
result depends only on the pods in the node's topology domains. A changed pod then affects only the
nodes in its domains. The cache is not used if another Filter plugin depends on other nodes, or if a
plugin of the profile decides which pods are eligible victims. Configuration can limit the search to
a sample.

Nodes without pods of lower priority are ruled out in one step (`_LowestPriorities`). If
NodeResourcesFit is the only Filter that depends on the pods of a node, victims are computed without
a trial: for many nodes together by `VictimColumns`, otherwise node by node by
`select_victims_by_resources`. The latter is also used for nodes with nominated pods or with pods
that a budget protects. In all other cases, victims are found by a trial on the node.

Invariant: a row of `columns` that is not `unknown` holds the result that `select_victims_on_node`
would return now. Each log (nodes, pods, nominations) marks the rows that it names as unknown. A
changed budget, or a log that no longer contains all changes, marks all rows.

Example: three pending pods have one shape and priority 100. The cycle of the first pod evaluates
5,000 nodes and picks row 7; its victims and its nomination are logged for row 7. The cycle of the
second pod evaluates only row 7.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import Status
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache, filters_beyond_the_node
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.scheduling.preemption.candidate_columns import CandidateColumns
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.scheduling.preemption.victim_columns import (
    VictimColumns,
    can_rate,
    guarded_rows,
)
from fairlead.engine.scheduling.preemption.victims import (
    NO_VICTIMS,
    select_victims_by_resources,
    select_victims_on_node,
)
from fairlead.engine.state.label_column import ABSENT
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

# Filters that look beyond the node, but only at pods, nodes and related objects.
_OF_PODS: Final = (InterPodAffinity, PodTopologySpread)
_NO_PODS: Final = 1 << 62  # higher than every priority
_KEPT_MIN: Final = 32
_NODES_TIMES_KEPT_MAX: Final = 400_000  # a result takes about 300 bytes if it has victims
# On fewer nodes, evaluating them one by one is faster.
_COLUMNS_FROM: Final = 24


@dataclass(frozen=True, slots=True)
class DryRun:
    """The dry-run results for the rows in `potential` (ascending), stored in `columns`."""

    columns: CandidateColumns
    potential: Rows

    def candidates(self) -> list[Candidate]:
        """Return all candidates, in row order."""
        return [self.columns.candidate(row) for row in self.columns.rows(self.potential)]

    def rejected(self) -> list[tuple[int, Status]]:
        """Return (row, status) of the rows in `potential` that are not candidates."""
        answers = ((row, self.columns.answer(row)) for row in self.potential.tolist())
        return [(row, answer) for row, answer in answers if isinstance(answer, Status)]


@dataclass(frozen=True, slots=True)
class CandidateSample:
    """The limits of a search: it starts at index `offset` of the potential nodes.

    It ends at `wanted` candidates, but continues if all of these violate a disruption budget.

    upstream: framework/preemption/preemption.go: DryRunPreemption
    """

    offset: int
    wanted: int


class _CachedAnswers:
    """The cached results for one shape and priority, with the log positions they are based on."""

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        self.columns = CandidateColumns(capacity, rules)
        self.nodes = self.pods = self.nominations = 0
        self.budget_version = self.related_version = -1
        self.reach: frozenset[str] | None = frozenset()


class _LowestPriorities:
    """The lowest priority of the pods on each node; recomputed for changed nodes."""

    def __init__(self) -> None:
        self._column: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._nodes = self._pods = 0

    def below(self, priority: int, table: NodeTable) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether the node has a pod with a priority below `priority`."""
        nodes, pods = table.node_log.since(self._nodes), table.pod_log.since(self._pods)
        rows: Iterable[int]
        if nodes is None or pods is None or len(self._column) != table.capacity:
            self._column = np.full(table.capacity, _NO_PODS, np.int64)
            rows = np.flatnonzero(table.alive).tolist()
        else:
            rows = {row for row in (*nodes, *pods) if table.alive[row]}
        for row in rows:
            others = table.at(row).pods.values()
            self._column[row] = min([other.priority for other in others], default=_NO_PODS)
        self._nodes, self._pods = table.node_log.position, table.pod_log.position
        return self._column < priority


class DryRuns:
    """Performs the dry runs of one profile, and caches their results."""

    def __init__(self, plans: PlanCache, policy: PreemptionPolicy) -> None:
        """Use the Filter plugins of the framework in `plans`."""
        self._plans = plans
        self._policy = policy
        self._kept: dict[Hashable, _CachedAnswers] = {}
        self._lowest = _LowestPriorities()
        self._victims = VictimColumns(plans.framework.cluster.table)

    def dry_run_preemption(
        self,
        pod: PodInfo,
        found: Feasibility,
        potential: Rows,
        sample: CandidateSample | None = None,
    ) -> DryRun:
        """Evaluate the rows in `potential` (ascending); `sample` limits the search."""
        framework = self._plans.framework
        table = framework.cluster.table
        columns = self._current(pod, found, table)
        columns.find = partial(self._evaluate, pod, found, only_fit(framework, found))
        own = table.find(framework.nominator.node_of(pod.uid))
        if own is not None:
            columns.unknown[own.row] = True  # the pod's own nomination does not count on its node
        if sample is None:
            self._ask(pod, found, potential[columns.unknown[potential]], columns)
        else:
            potential = self._evaluate_some(pod, found, potential, columns, sample)
        if own is not None:
            # other pods of the shape must take that nomination into account
            columns.unknown[own.row] = True
        return DryRun(columns, potential)

    def _current(self, pod: PodInfo, found: Feasibility, table: NodeTable) -> CandidateColumns:
        """Return the cached columns, with rows that may have changed marked as unknown.

        Returns new columns if the results for `pod` must not be cached.
        """
        beyond = filters_beyond_the_node(found.plan, found.state)
        if self._policy.eligibility or not all(type(one) in _OF_PODS for one in beyond):
            return CandidateColumns(table.capacity, self._policy.rules)
        key: Hashable = (pod.shape.id, pod.priority)
        if beyond:
            key = (key, pod.namespace, frozenset(pod.labels.items()))
        kept = self._kept.pop(key, None)
        if kept is None or len(kept.columns.unknown) != table.capacity:
            kept = _CachedAnswers(table.capacity, self._policy.rules)
        self._kept[key] = kept
        while len(self._kept) > max(_NODES_TIMES_KEPT_MAX // table.capacity, _KEPT_MIN):
            del self._kept[next(iter(self._kept))]
        self._mark_changed(kept, table, _reach(beyond, found.state), is_local=not beyond)
        return kept.columns

    def _mark_changed(
        self,
        kept: _CachedAnswers,
        table: NodeTable,
        reach: frozenset[str] | None,
        *,
        is_local: bool,
    ) -> None:
        """Mark rows as unknown if a change may affect their results.

        These are the rows in the logs, and the rows in their topology domains by the keys in
        `reach`. The keys at the time of the cached results count as well, because terms of placed
        pods may have changed.
        """
        cluster, nominator = self._plans.framework.cluster, self._plans.framework.nominator
        nodes = table.node_log.since(kept.nodes)
        pods = table.pod_log.since(kept.pods)
        names = nominator.log.since(kept.nominations)
        budgets = cluster.related.budget_version
        related = 0 if is_local else cluster.related.version
        keys = None if reach is None or kept.reach is None else reach | kept.reach
        if (
            nodes is None
            or pods is None
            or names is None
            or (kept.budget_version, kept.related_version) != (budgets, related)
            or (not is_local and nodes)  # domains may have changed
            or (keys is None and (pods or names))
        ):
            kept.columns.unknown[:] = True
        else:
            named = (table.find(name) for name in names)
            rows = [*nodes, *pods, *(node.row for node in named if node is not None)]
            kept.columns.unknown[rows] = True
            for key in keys or () if rows else ():
                ids = table.label_column(key).ids
                changed = ids[rows]
                kept.columns.unknown[np.isin(ids, changed[changed != ABSENT])] = True
        kept.reach = reach
        kept.nodes, kept.pods = table.node_log.position, table.pod_log.position
        kept.nominations = nominator.log.position
        kept.budget_version, kept.related_version = budgets, related

    def _evaluate_some(
        self,
        pod: PodInfo,
        found: Feasibility,
        potential: Rows,
        columns: CandidateColumns,
        sample: CandidateSample,
    ) -> Rows:
        """Evaluate rows until there are enough candidates; return the evaluated rows (ascending).

        As in upstream, candidates that violate a budget are limited to `sample.wanted`, and further
        such candidates are left out. The search ends when there are `wanted` candidates and one of
        them violates no budget.
        """
        looked_at: list[int] = []
        harmless = breaching = 0
        for row in np.roll(potential, -sample.offset).tolist():
            if columns.unknown[row]:
                self._ask(pod, found, np.array([row]), columns)
            answer = columns.answer(row)
            if isinstance(answer, Candidate) and not answer.pdb_violations:
                harmless += 1
            elif isinstance(answer, Candidate):
                if breaching == sample.wanted:
                    continue
                breaching += 1
            looked_at.append(row)
            if harmless and harmless + breaching >= sample.wanted:
                break
        return np.array(sorted(looked_at), np.int64)

    def _ask(self, pod: PodInfo, found: Feasibility, rows: Rows, columns: CandidateColumns) -> None:
        """Evaluate `rows`; nodes that have no pods of lower priority are ruled out first."""
        framework = self._plans.framework
        table = framework.cluster.table
        has_victims = self._lowest.below(pod.priority, table)[rows]
        columns.refuse(rows[~has_victims], NO_VICTIMS)
        fit, rows = only_fit(framework, found), rows[has_victims]
        if fit is not None and len(rows) >= _COLUMNS_FROM and can_rate(self._policy):
            rows = self._ask_columns(fit, pod, found, rows, columns)
        for row in rows.tolist():
            columns.put(row, self._evaluate(pod, found, fit, row))

    def _ask_columns(
        self,
        fit: NodeResourcesFit,
        pod: PodInfo,
        found: Feasibility,
        rows: Rows,
        columns: CandidateColumns,
    ) -> Rows:
        """Evaluate `rows` over columns; return the rows that must be evaluated one by one."""
        cluster, nominator = self._plans.framework.cluster, self._plans.framework.nominator
        plan, table = found.plan, cluster.table
        at = rows if plan.node_names is None else np.searchsorted(plan.rows, rows)
        apart = guarded_rows(table, cluster.budgets())[rows] | (plan.static_codes[at] != 0)
        if nominator:
            nodes = (table.find(name) for name in nominator.nodes())
            apart |= np.isin(rows, [node.row for node in nodes if node is not None])
        together = rows[~apart]
        if len(together) < _COLUMNS_FROM or not self._victims.refresh():
            return rows
        result = self._victims.costs(fit, pod, together, self._policy.rules)
        if result is None:
            return rows
        chosen, codes = result.is_candidate, result.codes
        columns.put_costs(together[chosen], result.costs[:, chosen])
        for code, status in enumerate(result.statuses):
            if code:
                columns.refuse(together[codes == code], status)
        left: Rows = rows[columns.unknown[rows]]
        return left

    def _evaluate(
        self, pod: PodInfo, found: Feasibility, fit: NodeResourcesFit | None, row: int
    ) -> Candidate | Status:
        """Evaluate one row; without a trial if `fit` is the only Filter that depends on pods."""
        framework = self._plans.framework
        node, budgets = framework.cluster.table.at(row), framework.cluster.budgets()
        if fit is None or found.plan.static_code(row):
            return select_victims_on_node(framework, found.state, pod, node, budgets, self._policy)
        rivals = framework.nominator.competing_pods_on(node.name, pod)
        return select_victims_by_resources(fit, pod, node, rivals, budgets, self._policy)


def _reach(beyond: Sequence[object], state: CycleState) -> frozenset[str] | None:
    """Return the topology keys whose domains contain all pods that affect a node's result.

    Returns an empty set if only the pods on the node affect it, and None if any pod in the cluster
    may affect it. `beyond` are the plugins that depend on other nodes.
    """
    match beyond:
        case []:
            return frozenset()
        case [InterPodAffinity() as plugin]:
            return plugin.reach(state)
        case _:
            return None


def only_fit(framework: Framework, found: Feasibility) -> NodeResourcesFit | None:
    """Return NodeResourcesFit if no other Filter that runs in this cycle depends on pods."""
    plan, skipped = found.plan, found.state.skipped_filters
    if any(point.name not in skipped for point in plan.split.cluster_filters):
        return None
    if len(plan.row_filters) != 1 or framework.tracks_moved_pods(found.state):
        return None
    plugin = plan.row_filters[0].plugin
    return plugin if type(plugin) is NodeResourcesFit else None
