"""Verdicts on nodes with nominated pods: the pod must fit both with and without the nominated pods.

upstream: framework/runtime/framework.go: RunFilterPluginsWithNominatedPods (for one node).

Only *competing* pods count. Competing pods are other pods that are nominated to the node and have
at least the priority of the pod. A verdict depends on the pod's priority and scheduling-relevant
spec (its `Shape`), on the node, and on the pods nominated to the node. The verdict is cached until
one of these changes. If a Filter depends on other nodes, only the verdict of the Filters that run
before this Filter is cached. They are called the *leading* Filters. All pods with the same spec and
priority share the cached verdicts, except the verdict on a pod's nominated node. A pod's own
nomination does not count for the pod itself, so this verdict is computed every time.

If NodeResourcesFit is the only Filter that depends on pods, a verdict is computed from the sums of
the pods' requests. Otherwise the nominated pods are added to the node hypothetically.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.extension_point import original_of, type_of
from fairlead.engine.framework.feasibility import run_pre_filters
from fairlead.engine.framework.plan.highest_totals import HighestTotals
from fairlead.engine.framework.plan.plan_cache import PlanCache, looks_beyond_the_node
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Codes = npt.NDArray[np.int32]
_KEPT_MAX: Final = 64
# If more codes than this have changed, merging all codes takes less time.
_CHANGED_MAX: Final = 16
_NO_NOMINATION: Final = -2
# Plugins whose AddPod, which counts a nominated pod on its node, never fails.
_COUNTING: Final = (InterPodAffinity, PodTopologySpread)


class NominatedVerdicts:
    """The cached verdicts on nodes with nominated pods, for one pod spec (`Shape`) and priority.

    `plan` contains the cached verdicts for pods with this spec, computed without nominated pods.
    `codes[i]` is about the node at `plan.rows[i]`. `_NO_NOMINATION` means that no pod with at least
    this priority is nominated to the node. Any other code is the verdict on the node: 0 if the pod
    fits, or else an index in `plan.statuses`.
    """

    def __init__(self, plan: ShapePlan) -> None:
        """Start without verdicts; this cache is valid while `plan` is valid."""
        self.plan = plan
        self.codes = _no_codes(plan)
        # Data of the last call of `merged`: its result, the array `plan.codes` that it read, and
        # the rows with verdicts. `_changed_rows` are the rows whose codes may have changed since
        # that call. `merged` is called only if the plan covers all rows. So the position of a node
        # in `codes` is its row.
        self._merged: Codes | None = None
        self._plan_codes: Codes = plan.codes
        self._nominated: set[int] = set()
        self._changed_rows: list[int] = []
        self._dirty: dict[str, None] = {}
        self._best: HighestTotals | None = None
        self._nominations = self._pods = self._nodes = -1

    def refresh(self, plans: PlanCache, pod: PodInfo, state: CycleState) -> None:
        """Re-evaluate the nodes whose nominations or pods changed.

        The node to which `pod` itself is nominated is skipped.
        """
        if len(self._changed_rows) > _CHANGED_MAX:
            self._changed_rows.clear()
            self._merged = None
        for name in self._changed(plans):
            self._dirty[name] = None
        if not self._dirty:
            return
        own = plans.framework.nominator.node_of(pod.uid)
        names = [name for name in self._dirty if name != own]
        if names:
            self._best = None
        for name in names:
            del self._dirty[name]
        self._changed_rows += _evaluate_all(plans, pod, self.plan, state, names, self.codes)

    def _changed(self, plans: PlanCache) -> Iterable[str]:
        nominator, table = plans.framework.nominator, self.plan.table
        named = nominator.log.since(self._nominations) if self._nominations >= 0 else None
        pods = table.pod_log.since(self._pods)
        nodes = table.node_log.since(self._nodes)
        self._nominations = nominator.log.position
        self._pods, self._nodes = table.pod_log.position, table.node_log.position
        if named is None or pods is None or nodes is None or nodes:
            self.codes, self._best, self._merged = _no_codes(self.plan), None, None
            return nominator.nodes()
        self._changed_rows += pods
        touched = [
            self.plan.table.at(row).name for row in dict.fromkeys(pods) if self._has_nomination(row)
        ]
        return (*named, *touched)

    def merged(self) -> Codes:
        """Return the verdicts on all nodes, with competing nominated pods taken into account.

        Returns `plan.codes` itself if no competing pod is nominated. The plan must cover all rows
        of the node table. The returned array is valid until the next `refresh`. Callers must not
        change the array.
        """
        codes, plan_codes, merged = self.codes, self.plan.codes, self._merged
        if (
            merged is None
            or plan_codes is not self._plan_codes
            or len(self._changed_rows) > _CHANGED_MAX
        ):
            is_nominated = codes != _NO_NOMINATION
            self._merged = merged = np.where(is_nominated, codes, plan_codes)
            self._plan_codes = plan_codes
            self._nominated = set(is_nominated.nonzero()[0].tolist())
        else:
            for row in self._changed_rows:
                if codes[row] == _NO_NOMINATION:
                    self._nominated.discard(row)
                    merged[row] = plan_codes[row]
                else:
                    self._nominated.add(row)
                    merged[row] = codes[row]
        self._changed_rows.clear()
        return merged if self._nominated else plan_codes

    def best(self) -> HighestTotals:
        """Return a HighestTotals that ignores the nodes that `codes` rejects.

        `plan`, the argument of the constructor, must cover all rows of the node table.
        """
        if self._best is None:
            self._best = HighestTotals(self.plan.table.pod_log, self.codes <= 0)
        return self._best

    def _has_nomination(self, row: int) -> bool:
        at = self.plan.position(row)
        return at is not None and bool(self.codes[at] != _NO_NOMINATION)


def only_fit(plan: ShapePlan, state: CycleState) -> NodeResourcesFit | None:
    """Return NodeResourcesFit if no other Filter in this cycle depends on pods, otherwise None.

    Also returns None if NodeResourcesFit itself does not run in this cycle.
    """
    if plan.split.uncached_names <= state.skipped_filters.keys():
        return only_row_filter(plan)
    return None


def only_row_filter(plan: ShapePlan) -> NodeResourcesFit | None:
    """Return NodeResourcesFit if it is the only Filter cached in `plan` that depends on pods.

    Otherwise returns None.
    """
    if len(plan.row_filters) != 1:
        return None
    plugin = original_of(plan.row_filters[0].plugin)
    return plugin if type(plugin) is NodeResourcesFit else None


def fitting_nominated_node(plans: PlanCache, pod: PodInfo) -> tuple[NodeInfo, CycleState] | None:
    """Return the nominated node of `pod` and the cycle's CycleState, if the pod fits on that node.

    No other node is evaluated, and no cache is updated. Returns None if the pod does not fit or if
    the node cannot be evaluated alone. The caller then evaluates all nodes, so PreFilter may run
    twice for the pod. A second run is harmless for in-tree plugins, but not for every user's
    plugin. Therefore, call the function only if all plugins are in-tree plugins.

    upstream: schedule_one.go: evaluateNominatedNode
    """
    framework, plan = plans.framework, plans.kept_plan(pod)
    node = framework.cluster.table.find(pod.pod.status.nominated_node_name)
    if node is None or plan is None or plan.node_names is not None or plan.has_errors:
        return None
    found = run_pre_filters(plans, pod, plan)
    if found.rejected is not None or found.restricting or plan.static.codes[node.row]:
        return None
    fit = only_fit(plan, found.state)
    if fit is None:
        return None
    rivals = framework.nominator.competing_pods_on(node.name, pod)
    return (node, found.state) if _rejection_beside(rivals, fit, pod, node) is None else None


def _rejection_beside(
    rivals: Iterable[PodInfo], fit: NodeResourcesFit, pod: PodInfo, node: NodeInfo
) -> Status | None:
    """Return why `pod` does not fit on `node` if `rivals` run there too; None if `pod` fits.

    `rivals` are the competing pods that are nominated to `node`. The only effect of the rivals is
    that they use resources. So if `pod` fits beside the rivals, `pod` also fits without the rivals.
    """
    there = node.pods
    return fit.filter_beside([rival for rival in rivals if rival.id not in there], pod, node)


def with_nominated_verdicts(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState, codes: Codes
) -> Codes:
    """Return a copy of `codes` in which the verdicts take competing nominated pods into account.

    Returns `codes` itself if no competing pod is nominated. The result is valid until the next
    call.
    """
    nominator = plans.framework.nominator
    if not nominator:
        return codes
    if looks_beyond_the_node(plan, state):
        nominated, left = _leading_verdicts(plans, pod, plan, state)
        _evaluate_all(plans, pod, plan, state, left, nominated)
    else:
        verdicts = _kept(plans, plan, (pod.shape.id, pod.priority))
        verdicts.refresh(plans, pod, state)
        nominated = verdicts.codes
        own = plan.table.find(nominator.node_of(pod.uid))
        if own is None and codes is plan.codes and plan.node_names is None:
            return verdicts.merged()
        if own is not None:
            nominated = nominated.copy()
            _evaluate_all(plans, pod, plan, state, [own.name], nominated)
    is_nominated = nominated != _NO_NOMINATION
    if codes is not plan.codes:
        is_nominated &= codes >= 0  # rows that PreFilter excluded keep their code
    if not np.logical_or.reduce(is_nominated):
        return codes
    return np.where(is_nominated, nominated, codes)


def best_beside_nominated(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState
) -> HighestTotals:
    """Return a HighestTotals, which finds the best of the nodes that accept `pod`.

    A node must accept the pod twice: with the competing pods that are nominated to the node, and
    without them.

    The Filters that `state` does not skip must depend only on a node and its pods. `plan` must
    cover all rows of the node table, and `pod` itself must not be nominated.
    """
    verdicts = _kept(plans, plan, (pod.shape.id, pod.priority))
    verdicts.refresh(plans, pod, state)
    return verdicts.best()


def _no_codes(plan: ShapePlan) -> Codes:
    return np.full(len(plan.rows), _NO_NOMINATION, np.int32)


def _evaluate_all(
    plans: PlanCache,
    pod: PodInfo,
    plan: ShapePlan,
    state: CycleState,
    names: Collection[str],
    nominated: Codes,
) -> list[int]:
    """Evaluate the nodes that are named in `names`, and write their verdicts into `nominated`.

    Returns the indexes of these verdicts in `nominated`.
    """
    written: list[int] = []
    if not names:
        return written
    framework = plans.framework
    fit = only_fit(plan, state)
    for name in names:
        node = plan.table.find(name)
        at = plan.position(node.row) if node is not None else None
        if node is None or at is None:
            continue
        written.append(at)
        rivals = framework.nominator.competing_pods_on(name, pod)
        if not rivals:
            nominated[at] = _NO_NOMINATION
        elif fit is None:
            status = framework.run_filters_with_nominated(state, pod, node)
            nominated[at] = 0 if status is None else plan.code(status)
        elif plan.static.codes[at]:
            nominated[at] = plan.codes[at]  # pods do not change the verdict of a NODE plugin
        else:
            status = _rejection_beside(rivals, fit, pod, node)
            nominated[at] = 0 if status is None else plan.code(status)
    return written


def _leading_verdicts(
    plans: PlanCache, pod: PodInfo, plan: ShapePlan, state: CycleState
) -> tuple[Codes, list[str]]:
    """Return the verdicts of the leading Filters, and the names of the nodes left to evaluate.

    The leading Filters come before the first Filter that depends on other nodes. A node that
    they reject need not be evaluated. If AddPod of a plugin may fail, the leading Filters do not
    run. The result then contains no verdicts, and all nodes with nominations are left to evaluate.
    """
    nominator = plans.framework.nominator
    if any(type_of(one) not in _COUNTING for one in plans.framework.moved_pod_trackers(state)):
        return _no_codes(plan), nominator.nodes()
    verdicts = _kept(plans, plan, (pod.shape.id, pod.priority, "leading"))
    verdicts.refresh(plans, pod, _leading_state(plan))
    codes = verdicts.codes.copy()
    passing = plan.rows[codes == 0].tolist()
    left = dict.fromkeys(plan.table.at(row).name for row in passing)
    own = nominator.node_of(pod.uid)
    return codes, list(left | {own: None} if own else left)


def _leading_state(plan: ShapePlan) -> CycleState:
    """Return a copy of `plan.state` that skips all Filters except the leading Filters.

    The leading Filters come before the first Filter that depends on other nodes.
    """
    state = plan.state.clone()
    split = plan.split
    for one in (*split.cluster_filters, *split.cluster_pre_filters):
        state.skipped_filters[one.name] = None
    return state


def _kept(plans: PlanCache, plan: ShapePlan, key: Hashable) -> NominatedVerdicts:
    verdicts = plans.with_nominated.pop(key, None)
    if not isinstance(verdicts, NominatedVerdicts) or verdicts.plan is not plan:
        verdicts = NominatedVerdicts(plan)
    plans.with_nominated[key] = verdicts
    while len(plans.with_nominated) > _KEPT_MAX:
        del plans.with_nominated[next(iter(plans.with_nominated))]
    return verdicts
