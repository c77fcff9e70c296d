"""ExtenderBackend: lets another scheduler use Fairlead's plugins through the extender protocol.

The backend answers three questions about one pod. Which of the given nodes fit? How do they score?
Would the pod fit a node if certain other pods were removed? The backend does not store this pod. In
the backend's scheduler configuration, `percentageOfNodesToScore` and `extenders` have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.engine.core.status import Code, Status, unresolvable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import SCORE_MAX
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.prioritization import explain_scores
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

UNKNOWN: Final = unresolvable("node is not known to the extender")


class ExtenderBackendError(Exception):
    """A plugin failed; the error text is the plugin's message."""


class ExtenderBackend:
    """Filters nodes, scores nodes and checks preemptions, for one pod at a time."""

    def __init__(self, config: SchedulerConfig, objects: Iterable[ApiObject] = ()) -> None:
        """Load `objects`. Raises ProfileError for an invalid profile."""
        self._cluster = Cluster(device_taint_rules=config.version.device_taint_rules)
        self._cluster.apply(ObjectsLoaded(list(objects)))
        handle = PluginHandle(self._cluster, Nominator())
        self._built = {
            profile.scheduler_name: build_profile(profile, handle, TieBreak(0), config.out_of_tree)
            for profile in config.profiles
        }
        self._usual = self._built[config.profiles[0].scheduler_name]

    def put_node(self, node: Node) -> None:
        """Store a new node, or replace the stored version of `node`."""
        self._cluster.apply(ObjectChanged(node))

    def verdicts(self, pod: Pod, nodes: Sequence[str]) -> dict[str, Status | None]:
        """Return, for each of `nodes`, the status that rejects `pod`, or None if the pod fits.

        The status of a node that the backend does not have is `UNKNOWN`. Raises
        ExtenderBackendError if a plugin fails.
        """
        evaluation, table = self._evaluation_of(pod), self._cluster.table
        if evaluation is None:
            return dict.fromkeys(nodes, UNKNOWN)
        found = evaluation.found()
        diagnosis = found.diagnosis()
        verdicts: dict[str, Status | None] = {}
        for name in nodes:
            node = table.find(name)
            if node is None:
                verdicts[name] = UNKNOWN
            else:
                fits = found.is_feasible(node)
                verdicts[name] = None if fits else diagnosis.status_of(node.row)
        return verdicts

    def scores(self, pod: Pod, nodes: Sequence[str], score_max: int) -> dict[str, int]:
        """Return a score from 0 to `score_max` for each of `nodes`.

        The score is 0 if `pod` does not fit the node, or if the backend does not have the node.
        `score_max` is the score of a node that gets the highest score from every plugin. Raises
        ExtenderBackendError if a plugin fails.
        """
        scores = dict.fromkeys(nodes, 0)
        evaluation = self._evaluation_of(pod)
        if evaluation is not None:
            for name, ratio in evaluation.ratios(nodes).items():
                scores[name] = int(ratio * score_max + 0.5)
        return scores

    def with_room(self, pod: Pod, candidates: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the nodes that `pod` fits after the removal of certain pods.

        `candidates` maps each node to the uids of the pods to remove from it. The result also
        contains the nodes in `candidates` that the backend does not have. Raises
        ExtenderBackendError if a plugin fails.
        """
        evaluation, table = self._evaluation_of(pod), self._cluster.table
        if evaluation is None:
            return list(candidates)
        found = evaluation.found()
        return [
            name
            for name, uids in candidates.items()
            if (node := table.find(name)) is None or evaluation.has_room(found, node, uids)
        ]

    def _evaluation_of(self, pod: Pod) -> _PodEvaluation | None:
        """Return `pod` with the profile that serves it; None if the backend has no nodes.

        If the backend stores `pod` as bound to a node, it deletes the stored pod first.
        """
        before = self._cluster.pods.get(pod.key)
        if before is not None and before.pod.spec.node_name:
            # The caller is scheduling the pod, so a binding that is stored here is outdated.
            self._cluster.apply(ObjectDeleted(before.pod))
        if not self._cluster.table.count:
            return None
        built = self._built.get(pod.spec.scheduler_name, self._usual)
        return _PodEvaluation(built, PodInfo(pod, self._cluster.shapes.shape_of(pod)))


class _PodEvaluation(Struct, frozen=True):
    built: BuiltProfile
    pod: PodInfo

    def found(self) -> Feasibility:
        """Return the results of the Filters on all nodes.

        Raises ExtenderBackendError if a plugin fails.
        """
        found = find_nodes_that_fit(self.built.plans, self.pod)
        _demand(found.error())
        return found

    def ratios(self, nodes: Sequence[str]) -> dict[str, float]:
        """Return {node name: total score of the node} for the feasible nodes in `nodes`.

        Each score is a fraction (0 to 1) of the highest possible total. Returns {} if no plugin
        scores nodes. Raises ExtenderBackendError if a plugin fails.
        """
        found = self.found()
        table, plan = found.plan.table, found.plan
        known = [node for name in nodes if (node := table.find(name)) is not None]
        fitting = [plan.position(node.row) for node in known if found.is_feasible(node)]
        highest = SCORE_MAX * sum(self.built.framework.weights().values())
        if not fitting or not highest:
            return {}
        found.keep(np.array(fitting, np.int64))
        ranked = explain_scores(self.built.plans, self.pod, found)
        _demand(ranked.error)
        rows = plan.rows[ranked.positions].tolist()
        totals = zip(rows, ranked.totals.tolist(), strict=True)
        return {table.at(row).name: total / highest for row, total in totals}

    def has_room(self, found: Feasibility, node: NodeInfo, uids: Sequence[str]) -> bool:
        """Return whether the pod fits `node` after the removal of the pods with the given `uids`.

        `found` is the result of `found()`. Raises ExtenderBackendError if a plugin fails.
        """
        if found.rejected is not None or _is_excluded(found, node):
            return False
        leaving = [other for other in node.pods.values() if other.uid in uids]
        try:
            with self.built.framework.trial(found.state, self.pod) as trial:
                for other in leaving:
                    trial.remove(other, node)
                verdict = trial.verdict(node)
        except PluginFault as fault:
            raise ExtenderBackendError(str(fault)) from None
        if verdict is not None and verdict.code is Code.ERROR:
            raise ExtenderBackendError(verdict.message)
        return verdict is None


def _is_excluded(found: Feasibility, node: NodeInfo) -> bool:
    at = found.plan.position(node.row)
    return at is None or bool(found.codes[at] < 0)


def _demand(failure: Status | None) -> None:
    if failure is not None:
        raise ExtenderBackendError(failure.message)
