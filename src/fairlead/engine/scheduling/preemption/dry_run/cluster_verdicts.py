"""ClusterVerdicts: finds victims by adding up requests, even if some Filters depend on other nodes.

Removing pods from a node seldom changes the verdict of topology spread, anti-affinity or volumes on
that node (`RemovalEffect`). If these Filters accept a node with all of its pods, then only
resources decide which pods can stay. If these Filters reject a node, and no possible victim affects
their verdict, preemption cannot help on that node. Only the remaining nodes need a trial
(`framework.trial`): pods are removed hypothetically, and all Filters run again.

Example: a topology spread constraint (maxSkew 1) spreads the pods of app a over two zones. Zone z1
has one pod of app a more than zone z2. The preemptor is a new pod of app a. The constraint accepts
all nodes in z2, so there NodeResourcesFit alone determines the victims. The constraint rejects all
nodes in z1. A node in z1 needs a trial only if it runs a pod of app a with a lower priority than
the preemptor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.extension_point import original_of
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Locality, Mask, Rows
from fairlead.engine.framework.points import FilterPoint
from fairlead.engine.framework.preemption.removal_effect import RemovalEffect, RemovalEffectPlugin
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.scheduling.nominated_pods import only_row_filter
from fairlead.engine.state.fork import fork
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

Codes = npt.NDArray[np.int32]


class ClusterVerdicts(Struct, frozen=True):
    """The Filters (`points`) whose verdict on a node also depends on other nodes.

    `effects` say how the removal of pods can change the verdicts of these Filters. Of all other
    Filters in the scheduling cycle, only `fit` depends on the pods of the node.
    """

    framework: Framework
    fit: NodeResourcesFit
    points: Sequence[FilterPoint]
    effects: Sequence[RemovalEffect]

    def judge(self, pod: PodInfo, found: Feasibility, rows: Rows) -> tuple[Codes, Mask]:
        """Return the verdicts of the Filters in `self.points` on the nodes at `rows`, and a mask.

        `rows` are ascending. A verdict is an index in `found.plan.statuses`; 0 means that the
        Filters accept the node. The verdicts assume that no pod is removed from the node, and take
        nominated pods into account. The mask is True for the nodes on which the removal of pods of
        lower priority may change the verdict.
        """
        codes: Codes = np.zeros(len(rows), np.int32)
        for point in self.points:
            open_at = np.flatnonzero(codes == 0)
            if len(open_at):
                codes[open_at] = found.plan.run_filter(point, found.state, pod, rows[open_at])
        self._judge_nominated(pod, found, rows, codes)
        table = found.plan.table
        suspects = np.zeros(len(rows), np.bool_)
        for effect in self.effects:
            affected = np.ones(len(rows), np.bool_) if effect.may_harm else codes != 0
            suspects |= affected & _may_be_at(effect, table.capacity, pod.priority)[rows]
        if suspects.any():
            suspects[suspects] = self._have_concerned_victims(pod, table, rows[suspects])
        return codes, suspects

    def _judge_nominated(self, pod: PodInfo, found: Feasibility, rows: Rows, codes: Codes) -> None:
        """Overwrite the `codes` of nodes that are rejected because of their nominated pods.

        As in `Framework.run_filters_with_nominated`, a node must be accepted both with and without
        the nominated pods.
        """
        nominator, table = self.framework.nominator, found.plan.table
        if not nominator:
            return
        state = found.state.clone()
        for node in map(table.find, nominator.nodes()):
            at = 0 if node is None else int(rows.searchsorted(node.row))
            if node is not None and at < len(rows) and rows[at] == node.row:
                status = self._rejection_beside_nominated(pod, state, node)
                if status is not None:
                    codes[at] = found.plan.code(status)

    def _rejection_beside_nominated(
        self, pod: PodInfo, state: CycleState, node: NodeInfo
    ) -> Status | None:
        """Return why `node` rejects `pod` if its nominated pods count as running on `node`.

        Only the nominated pods that compete with `pod` count. Returns None if there are no such
        pods, or if the node accepts `pod` beside these pods. `state` is changed, and restored at
        the end.
        """
        framework = self.framework
        rivals = framework.nominator.competing_pods_on(node.name, pod)
        awaited = [rival for rival in rivals if rival.id not in node.pods]
        if not awaited:
            return None
        with fork(framework.cluster.table) as hypothesis:
            for rival in awaited:
                hypothesis.add_pod(node, rival)
                framework.run_add_pod(state, pod, rival, node)
            status = framework.run_filters(state, pod, node, self.points)
        for rival in awaited:
            framework.run_remove_pod(state, pod, rival, node)
        return status

    def _have_concerned_victims(self, pod: PodInfo, table: NodeTable, rows: Rows) -> list[bool]:
        """Return, for each node in `rows`, whether the removal of a pod may change a verdict.

        Only pods of lower priority than `pod` count, because only such pods can be victims.
        `RemovalEffect.concerns` gives the same answer for all pods of a group that was loaded in
        bulk (`Representatives`). So only one pod of each group is examined.
        """
        verdicts: dict[PodInfo, bool] = {}

        def is_concerned(other: PodInfo) -> bool:
            verdict = verdicts.get(other)
            if verdict is None:
                verdict = verdicts[other] = other.priority < pod.priority and any(
                    effect.concerns(other) for effect in self.effects
                )
            return verdict

        alike = table.representatives.of
        return [any(map(is_concerned, alike(table.at(row).stored_pods))) for row in rows.tolist()]


def _may_be_at(effect: RemovalEffect, capacity: int, priority: int) -> Mask:
    """Return, for each row, whether the node may have pods below `priority` that `effect` concerns.

    Usually, the result is False for all rows. The reason is that most constraints select only pods
    of the preemptor's own workload, and these pods have the preemptor's priority, not a lower one.
    """
    if effect.locations is None:
        return np.ones(capacity, np.bool_)
    found = np.zeros(capacity, np.bool_)
    for location in effect.locations:
        if location.lowest_priority < priority:
            found[list(location.rows)] = True
    return found


def cluster_verdicts(framework: Framework, found: Feasibility) -> ClusterVerdicts | None:
    """Return the ClusterVerdicts of this cycle; None if every node needs a trial.

    Every node needs a trial if:
    - a Filter that depends on other nodes is not a RemovalEffectPlugin; or
    - a Filter other than NodeResourcesFit depends on the pods of a node; or
    - a plugin with `add_pod` and `remove_pod` has no Filter that depends on other nodes.
    """
    fit, skipped = only_row_filter(found.plan), found.state.skipped_filters
    points = [one for one in found.plan.split.cluster_filters if one.name not in skipped]
    effects: list[RemovalEffect] = []
    for point in points:
        plugin = original_of(point.plugin)
        if isinstance(plugin, RemovalEffectPlugin):
            effects.append(plugin.removal_effect(found.state))
        elif point.locality is not Locality.NODE:
            return None
    plugins = [point.plugin for point in points]
    if fit is None or any(one not in plugins for one in framework.moved_pod_trackers(found.state)):
        return None
    return ClusterVerdicts(framework, fit, points, effects)
