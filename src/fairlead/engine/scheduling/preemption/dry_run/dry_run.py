"""dry_run_preemption: evaluates preemption on every node where it might help.

The result for a node depends on the preemptor, the node, the pods on the node, the pods that are
nominated to the node, and the disruption budgets. Of the preemptor, only the priority and the
scheduling-relevant spec (`Shape`) matter. Results are cached per shape and priority. Only changed
nodes are evaluated again. If topology spread or pod affinity matters, a result also depends on the
preemptor's namespace and labels, the pods of all nodes, and related objects. Such a result is
cached until one of these inputs changes. If anti-affinity is the only rule that depends on other
nodes, a changed pod affects only the nodes in the same topology domains. Results are not cached if
a Filter plugin depends on other nodes and is neither PodTopologySpread nor InterPodAffinity.
Results are not cached either if a plugin decides which pods are eligible victims.

Nodes without pods of lower priority are ruled out in one step (`_LowestPriorities`). A trial
removes pods from a node hypothetically and runs all Filters again. If NodeResourcesFit is the only
Filter that depends on the pods of a node, victims are computed without a trial. In this case,
`VictimColumns` computes the victims for many nodes together, and `select_victims_by_resources`
computes the victims for one node. If some Filters depend on other nodes, the victims are first
computed as if these Filters did not exist. These intermediate results are always cached per shape
and priority. The intermediate results are then combined with the verdicts of these Filters
(`ClusterVerdicts`). In all other cases, victims are found by a trial on the node.

Invariant: a row of `columns` that is not `unknown` holds the result that `select_victims_on_node`
would return now. If the log of nodes, pods or nominations names a node, the row of that node is
marked as `unknown`. If the limits of a budget have changed, the rows with pods of the budget are
marked. All rows are marked if a budget was added or removed, if its selector changed, or if a log
has dropped changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.extension_point import original_of, type_of
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Mask, Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache, filters_beyond_the_node
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.scheduling.nominated_pods import only_fit
from fairlead.engine.scheduling.preemption.args import CandidateSample
from fairlead.engine.scheduling.preemption.dry_run.candidate_columns import CandidateColumns
from fairlead.engine.scheduling.preemption.dry_run.cluster_verdicts import (
    ClusterVerdicts,
    Codes,
    cluster_verdicts,
)
from fairlead.engine.scheduling.preemption.dry_run.victim_columns import (
    NO_POD,
    VictimColumns,
    can_rate,
    guarded_rows,
)
from fairlead.engine.scheduling.preemption.dry_run.victims import (
    NO_VICTIMS,
    select_victims_by_resources,
    select_victims_on_node,
)
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.label_column import ABSENT
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

# Filters that look beyond the node, but only at pods, nodes and related objects.
_OF_PODS: Final = (InterPodAffinity, PodTopologySpread)
_KEPT_MIN: Final = 32
_NODES_TIMES_KEPT_MAX: Final = 400_000  # a result takes about 300 bytes if it has victims
# If there are fewer nodes than this, evaluating them one by one is faster.
_COLUMNS_FROM: Final = 24
# After more changes than this, reading all lowest priorities from columns is faster.
_CHANGES_MAX: Final = 1_024


class DryRun(Struct, frozen=True):
    """The results of dry runs: `columns` has a result for each node row in `potential`.

    The rows are in ascending order.
    """

    columns: CandidateColumns
    potential: Rows

    def candidates(self) -> list[Candidate]:
        """Return all candidates, in row order."""
        return [self.columns.candidate(row) for row in self.columns.rows(self.potential)]

    def rejected(self) -> list[tuple[int, Status]]:
        """Return (row, status) of the rows in `potential` that are not candidates."""
        results = ((row, self.columns.result(row)) for row in self.potential.tolist())
        return [(row, result) for row, result in results if isinstance(result, Status)]


class _CachedResults:
    """Cached results of dry runs, and the change log positions up to which they are valid."""

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        self.columns = CandidateColumns(capacity, rules)
        self.nodes = self.pods = self.nominations = self.budget_limits = 0
        self.budget_selection = self.related_version = self.labels = -1
        self.reach: frozenset[str] | None = frozenset()


class _LowestPriorities:
    """The lowest priority of the pods on each node.

    If a node or its pods have changed, the node's lowest priority is recomputed only when it is
    read. This saves work: for example, the priorities of failed nodes, from which pods are evicted,
    are not read.
    """

    def __init__(self, victims: VictimColumns) -> None:
        self._victims = victims
        self._column: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._is_stale: Mask = np.zeros(0, np.bool_)
        self._nodes = self._pods = 0
        self._labels = -1

    def below(self, priority: int, table: NodeTable, rows: Rows) -> Mask:
        """Return, for each of `rows`, whether a pod on the node has a priority below `priority`."""
        self._note_changes(table)
        for row in rows[self._is_stale[rows]].tolist():
            others = table.representatives.of(table.at(row).stored_pods)
            self._column[row] = min([other.priority for other in others], default=NO_POD)
            self._is_stale[row] = False
        has_lower: Mask = self._column[rows] < priority
        return has_lower

    def _note_changes(self, table: NodeTable) -> None:
        # Nodes have been added, removed or relabelled if the labels' epoch has changed. Other
        # changes of a Node do not matter.
        labels = table.pod_index.labels.value
        nodes = () if labels == self._labels else table.node_log.since(self._nodes)
        pods = table.pod_log.since(self._pods)
        if (
            nodes is None
            or pods is None
            or len(nodes) + len(pods) > _CHANGES_MAX
            or len(self._column) != table.capacity
        ):
            self._start(table)
        else:
            self._is_stale[[*nodes, *pods]] = True
        self._nodes, self._pods = table.node_log.position, table.pod_log.position
        self._labels = labels

    def _start(self, table: NodeTable) -> None:
        """Fill `_column` anew, with one entry for each row of the node table.

        Usually, the lowest priorities are read from the columns of `_victims`. If the cluster is
        small, or if these columns would take too much memory, all rows are marked as stale instead.
        """
        is_known = table.count >= _COLUMNS_FROM and self._victims.refresh()
        if is_known:
            self._column = self._victims.lowest_priorities()
        else:
            self._column = np.full(table.capacity, NO_POD, np.int64)
        self._is_stale = np.full(table.capacity, not is_known)


class _Run(Struct, frozen=True):
    """The dry runs of one cycle, whose results are stored in `columns`.

    There are three cases:
    - Only NodeResourcesFit depends on the pods of a node. `fit` is this Filter.
    - Some Filters depend on other nodes, but not every node needs a trial. `find_verdicts` returns
      the verdicts of these Filters, and `fit` is None.
    - Every node needs a trial. `fit` is None, and `find_verdicts` returns None.

    `find_verdicts` is slow at the first call, so it is called only if a node has possible victims.
    """

    pod: PodInfo
    found: Feasibility
    columns: CandidateColumns
    fit: NodeResourcesFit | None
    find_verdicts: Callable[[], ClusterVerdicts | None]


def _no_verdicts() -> None:
    return None


class DryRuns:
    """Performs the dry runs of one profile, and caches their results."""

    def __init__(self, plans: PlanCache, policy: PreemptionPolicy) -> None:
        """Start without cached results; dry runs use the Filter plugins of `plans.framework`."""
        self._plans = plans
        self._policy = policy
        self._kept: dict[Hashable, _CachedResults] = {}
        self._victims = VictimColumns(plans.framework.cluster.table)
        self._lowest = _LowestPriorities(self._victims)

    def dry_run_preemption(
        self,
        pod: PodInfo,
        found: Feasibility,
        potential: Rows,
        sample: CandidateSample | None = None,
    ) -> DryRun:
        """Evaluate the nodes at the rows `potential`, which must be in ascending order.

        `found` is the result of filtering for `pod`. If `sample` is None, all nodes at these rows
        are evaluated. If `sample` is not None, it limits the number of candidates to find.
        """
        framework = self._plans.framework
        table = framework.cluster.table
        columns = self._current(pod, found, table)
        fit = only_fit(found.plan, found.state)
        find_verdicts: Callable[[], ClusterVerdicts | None] = _no_verdicts
        if fit is None and not self._policy.eligibility:
            find_verdicts = cache(partial(cluster_verdicts, framework, found))
        run = _Run(pod, found, columns, fit, find_verdicts)
        columns.find = partial(self._find_victims, run)
        own = self._own_node(pod)
        if own is not None:
            columns.unknown[own.row] = True  # the pod's own nomination does not count on its node
        if sample is None:
            self._evaluate_rows(run, columns.unknown_rows(potential))
        else:
            potential = self._evaluate_some(run, potential, sample)
        if own is not None:
            # other pods of the shape must take that nomination into account
            columns.unknown[own.row] = True
        return DryRun(columns, potential)

    def _current(self, pod: PodInfo, found: Feasibility, table: NodeTable) -> CandidateColumns:
        """Return the cached columns for `pod`; results that may have changed are set to unknown.

        If the results for `pod` must not be cached, returns new columns instead.
        """
        beyond = filters_beyond_the_node(found.plan, found.state)
        if self._policy.eligibility or not all(type_of(one) in _OF_PODS for one in beyond):
            return CandidateColumns(table.capacity, self._policy.rules)
        if not beyond:
            return self._by_sums(pod, table)
        kept = self._entry(
            (pod.shape.id, pod.priority, pod.namespace, frozenset(pod.labels.items()))
        )
        self._mark_changed(kept, table, _reach(beyond, found.state), is_local=False)
        return kept.columns

    def _by_sums(self, pod: PodInfo, table: NodeTable) -> CandidateColumns:
        """Return the cached columns for dry runs in which no Filter depends on other nodes."""
        kept = self._entry((pod.shape.id, pod.priority))
        self._mark_changed(kept, table, frozenset(), is_local=True)
        return kept.columns

    def _entry(self, key: Hashable) -> _CachedResults:
        capacity = self._plans.framework.cluster.table.capacity
        kept = self._kept.pop(key, None)
        if kept is None or len(kept.columns.unknown) != capacity:
            kept = _CachedResults(capacity, self._policy.rules)
        self._kept[key] = kept
        while len(self._kept) > max(_NODES_TIMES_KEPT_MAX // capacity, _KEPT_MIN):
            del self._kept[next(iter(self._kept))]
        return kept

    def _mark_changed(
        self,
        kept: _CachedResults,
        table: NodeTable,
        reach: frozenset[str] | None,
        *,
        is_local: bool,
    ) -> None:
        """Mark rows as unknown if a change may affect their results.

        The changes are read from the change logs of `table`, of the budgets and of the nominations.
        Changed limits of a budget affect the rows of the nodes with pods of the budget. A change to
        a node, its pods or its nominations affects the row of this node. Such a change also affects
        the rows of all nodes in the same topology domains. The topology keys are the keys in
        `reach` and in `kept.reach`, the value of `reach` at the previous call. The two values may
        differ, because the affinity terms of placed pods may have changed. The affected rows cannot
        be determined if nodes have been added, removed or relabelled, or if a node or a pod has
        changed and `reach` is None. In these cases, every row is marked. `is_local` means that
        results do not depend on other nodes or on related objects.
        """
        cluster, nominator = self._plans.framework.cluster, self._plans.framework.nominator
        nodes = table.node_log.since(kept.nodes)
        pods = table.pod_log.since(kept.pods)
        names = nominator.log.since(kept.nominations)
        budgets = cluster.budgets()
        limited = budgets.limit_log.since(kept.budget_limits)
        selection = budgets.selection_version
        related = 0 if is_local else cluster.related.version
        labels = 0 if is_local else table.pod_index.labels.value
        keys = None if reach is None or kept.reach is None else reach | kept.reach
        if (
            nodes is None
            or pods is None
            or names is None
            or limited is None
            or (kept.budget_selection, kept.related_version) != (selection, related)
            or kept.labels != labels
            or (keys is None and (nodes or pods or names))
        ):
            kept.columns.unknown[:] = True
        else:
            named = (table.find(name) for name in names)
            rows = [*nodes, *pods, *(node.row for node in named if node is not None)]
            for row in rows:
                kept.columns.unknown[row] = True
            for key in keys or () if rows else ():
                ids = table.label_column(key).ids
                changed = ids[rows]
                kept.columns.unknown[np.isin(ids, changed[changed != ABSENT])] = True
            if limited:
                kept.columns.unknown[_rows_of_budgets(table, budgets, {*limited})] = True
        kept.reach = reach
        kept.nodes, kept.pods = table.node_log.position, table.pod_log.position
        kept.nominations = nominator.log.position
        kept.budget_limits, kept.budget_selection = budgets.limit_log.position, selection
        kept.related_version, kept.labels = related, labels

    def _evaluate_some(self, run: _Run, potential: Rows, sample: CandidateSample) -> Rows:
        """Evaluate nodes until there are enough candidates; return the rows of evaluated nodes.

        The result is ascending. As in upstream, it contains at most `sample.wanted` nodes whose
        candidate violates a disruption budget. If more such nodes are evaluated, they are left out
        of the result.
        """
        columns = run.columns
        looked_at: list[int] = []
        harmless = breaching = 0
        for row in np.roll(potential, -sample.offset).tolist():
            if columns.unknown[row]:
                self._evaluate_rows(run, np.array([row]))
            answer = columns.result(row)
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

    def _evaluate_rows(self, run: _Run, rows: Rows) -> None:
        """Evaluate `rows`; first rule out the nodes without pods of lower priority.

        No node is ruled out in advance if there are few rows and `run.fit` is not None. In this
        case, the evaluation of each row looks for pods of lower priority.
        """
        table = self._plans.framework.cluster.table
        if len(rows) >= _COLUMNS_FROM or run.fit is None:
            has_victims = self._lowest.below(run.pod.priority, table, rows)
            run.columns.refuse(rows[~has_victims], NO_VICTIMS)
            rows = rows[has_victims]
        if run.fit is not None:
            self._evaluate_by_sums(run.fit, run, rows)
            return
        verdicts = run.find_verdicts() if len(rows) else None
        if verdicts is not None:
            rows = self._evaluate_by_verdicts(verdicts, run, rows)
        for row in rows.tolist():
            run.columns.put(row, self._evaluate(run.pod, run.found, None, row))

    def _evaluate_by_sums(self, fit: NodeResourcesFit, run: _Run, rows: Rows) -> None:
        """Evaluate `rows` as if `fit` were the only Filter that depends on pods."""
        if len(rows) >= _COLUMNS_FROM and can_rate(self._policy):
            rows = self._evaluate_columns(fit, run, rows)
        for row in rows.tolist():
            run.columns.put(row, self._evaluate(run.pod, run.found, fit, row))

    def _evaluate_by_verdicts(self, verdicts: ClusterVerdicts, run: _Run, rows: Rows) -> Rows:
        """Evaluate the rows that need no trial; return the other rows."""
        pod, found, columns = run.pod, run.found, run.columns
        plan, own = found.plan, self._own_node(pod)
        at = _positions(plan, rows)
        apart = plan.static.codes[at] != 0
        if own is not None:
            apart |= rows == own.row  # the cached sums may include the pod itself
        judged, at = rows[~apart], at[~apart]
        codes, needs_trial = verdicts.judge(pod, found, judged)
        # A nominated pod may take the resources that a node has free now.
        has_room = (plan.codes[at] == 0) & ~self._has_nomination()[judged]
        needs_trial |= has_room & (codes == 0)  # the pod would fit, so something else rejected it
        for code in _distinct(codes[has_room & ~needs_trial]):
            columns.refuse(judged[has_room & ~needs_trial & (codes == code)], plan.statuses[code])
        short = ~has_room & ~needs_trial
        self._combine(verdicts.fit, run, judged[short], codes[short])
        left: Rows = rows[columns.unknown[rows]]
        return left

    def _combine(self, fit: NodeResourcesFit, run: _Run, rows: Rows, codes: Codes) -> None:
        """Store the results for `rows`, whose nodes may lack resources for the preemptor.

        A node is a candidate if its victims free enough resources, and if its code in `codes` is 0.
        `codes` are the verdicts of the Filters that depend on other nodes.
        """
        pod, found, columns = run.pod, run.found, run.columns
        by_sums = self._by_sums(pod, found.plan.table)
        by_sums.find = partial(self._evaluate, pod, found, fit)
        self._evaluate_by_sums(
            fit, _Run(pod, found, by_sums, fit, _no_verdicts), rows[by_sums.unknown[rows]]
        )
        # The status ERROR (`_no_victim`) means that the pod fits even if no pod is removed.
        errors = np.array([one.code is Code.ERROR for one in by_sums.statuses], np.bool_)
        fits = by_sums.is_candidate[rows] | (errors[by_sums.refusals[rows]] & (codes != 0))
        accepted = rows[fits & (codes == 0)]
        columns.put_costs(accepted, by_sums.costs[:, accepted])
        for code in _distinct(codes[fits & (codes != 0)]):
            columns.refuse(rows[fits & (codes == code)], found.plan.statuses[code])
        short = rows[~fits]
        refusals = by_sums.refusals[short]
        for refusal in _distinct(refusals):
            columns.refuse(short[refusals == refusal], by_sums.statuses[refusal])

    def _find_victims(self, run: _Run, row: int) -> Candidate | Status:
        """Repeat the dry run on the node at `row` to find its victims, which are not stored."""
        verdicts = run.find_verdicts()
        fit = run.fit if verdicts is None else verdicts.fit
        return self._evaluate(run.pod, run.found, fit, row)

    def _own_node(self, pod: PodInfo) -> NodeInfo | None:
        """Return the node to which `pod` itself is nominated; None if there is none."""
        framework = self._plans.framework
        return framework.cluster.table.find(framework.nominator.node_of(pod.uid))

    def _has_nomination(self) -> Mask:
        """Return, for each row, whether pods are nominated to the node."""
        table, nominator = self._plans.framework.cluster.table, self._plans.framework.nominator
        found = np.zeros(table.capacity, np.bool_)
        nodes = (table.find(name) for name in nominator.nodes())
        found[[node.row for node in nodes if node is not None]] = True
        return found

    def _evaluate_columns(self, fit: NodeResourcesFit, run: _Run, rows: Rows) -> Rows:
        """Evaluate `rows` together; return the rows that must be evaluated one by one."""
        cluster, columns, plan = self._plans.framework.cluster, run.columns, run.found.plan
        apart = guarded_rows(cluster.table, cluster.budgets(), rows)
        apart |= plan.static.codes[_positions(plan, rows)] != 0
        apart |= self._has_nomination()[rows]
        together = rows[~apart]
        if len(together) < _COLUMNS_FROM or not self._victims.refresh():
            return rows
        result = self._victims.costs(fit, run.pod, together, self._policy.rules)
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
        """Return the candidate for the node at `row`, or a status that says why there is none.

        If `fit` is not None, it is the only Filter that depends on the pods of the node. The
        victims are then found by comparing sums of requests, without calling the Filters. There is
        one exception: if a Filter that reads only the Node object rejects the node, all Filters are
        called, so that the returned status is that of the rejecting Filter.
        """
        framework = self._plans.framework
        node, budgets = framework.cluster.table.at(row), framework.cluster.budgets()
        if fit is None or found.plan.static_code(row):
            return select_victims_on_node(framework, found.state, pod, node, budgets, self._policy)
        rivals = framework.nominator.competing_pods_on(node.name, pod)
        loaded = framework.cluster.table.representatives
        return select_victims_by_resources(fit, pod, node, loaded, rivals, budgets, self._policy)


def _rows_of_budgets(
    table: NodeTable, budgets: DisruptionBudgets, keys: Collection[str]
) -> list[int]:
    """Return the rows of the nodes with pods that one of the budgets in `keys` selects."""
    found: set[int] = set()
    for pods in table.pod_index.classes():
        if any(one.key in keys for one in budgets.selecting_class(pods)):
            found.update(pods.where.rows)
    return list(found)


def _distinct(codes: Codes) -> list[int]:
    """Return the distinct codes, ascending.

    `np.unique` is not used, because it imports a large module.
    """
    return np.flatnonzero(np.bincount(codes)).tolist() if len(codes) else []


def _positions(plan: ShapePlan, rows: Rows) -> Rows:
    """Return the index in `plan.rows` of each of `rows`; `plan.rows` must contain all `rows`."""
    return rows if plan.node_names is None else np.searchsorted(plan.rows, rows)


def _reach(beyond: Sequence[object], state: CycleState) -> frozenset[str] | None:
    """Return the topology keys that determine which pods can affect the result for a node.

    A pod on another node can affect the result only if both nodes are in the same domain of one of
    these keys. The set is empty if pods on other nodes never affect the result. Returns None if
    every pod in the cluster may affect the result. `beyond` are the plugins that depend on other
    nodes.
    """
    match [*map(original_of, beyond)]:
        case [InterPodAffinity() as plugin]:
            return plugin.reach(state)
        case _:
            return None
