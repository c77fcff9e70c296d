"""Adviser: a scheduler's plugins, asked by another scheduler.

It knows the cluster it was given and the nodes it is told of since, and answers about one pod at a
time: which of some nodes fit, how good they are, and whether the pod would fit where others leave.
It decides nothing, remembers no pod that it was asked about, and asks nobody: percentages of nodes
and extenders of its own configuration mean nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.engine.core.status import Code, Status, unresolvable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import SCORE_MAX
from fairlead.engine.framework.nominator import Nominator
from fairlead.engine.scheduling.compose import Beliefs, Served, serve
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.prioritization import explain_scores
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

UNKNOWN: Final = unresolvable("node is not known to the extender")


class AdviserError(Exception):
    """A plugin failed; `str()` is what it said."""


class Adviser:
    """See the module's docstring."""

    def __init__(self, config: SchedulerConfig, objects: Iterable[ApiObject] = ()) -> None:
        """Know `objects`. Raises ProfileError for a profile that cannot be served."""
        self._cluster = Cluster()
        self._cluster.apply(ObjectsLoaded(list(objects)))
        beliefs = Beliefs(self._cluster, Nominator())
        self._served = {
            profile.scheduler_name: serve(profile, beliefs, TieBreak(0), config.out_of_tree)
            for profile in config.profiles
        }
        self._usual = self._served[config.profiles[0].scheduler_name]

    def know(self, node: Node) -> None:
        """Believe that `node` is so from now on."""
        self._cluster.apply(ObjectChanged(node))

    def verdicts(self, pod: Pod, nodes: Sequence[str]) -> dict[str, Status | None]:
        """What keeps `pod` from each of `nodes`, None where it fits. Raises AdviserError."""
        question, table = self._question(pod), self._cluster.table
        if question is None:
            return dict.fromkeys(nodes, UNKNOWN)
        found = question.found()
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

    def scores(self, pod: Pod, nodes: Sequence[str], most: int) -> dict[str, int]:
        """How good each of `nodes` is, from 0 to `most`; 0 where `pod` does not fit.

        What it is compared with is the best that its plugins could say. Raises AdviserError.
        """
        scores = dict.fromkeys(nodes, 0)
        question = self._question(pod)
        if question is not None:
            for name, share in question.shares(nodes).items():
                scores[name] = int(share * most + 0.5)
        return scores

    def with_room(self, pod: Pod, candidates: Mapping[str, Sequence[str]]) -> list[str]:
        """The nodes of `candidates` that `pod` fits once the pods with these uids have gone.

        A node that is not known is among them: nothing speaks against it. Raises AdviserError.
        """
        question, table = self._question(pod), self._cluster.table
        if question is None:
            return list(candidates)
        found = question.found()
        return [
            name
            for name, uids in candidates.items()
            if (node := table.find(name)) is None or question.has_room(found, node, uids)
        ]

    def _question(self, pod: Pod) -> _Question | None:
        """What is to be asked about `pod`; None while no node is known."""
        before = self._cluster.pods.get(pod.key)
        if before is not None and before.pod.spec.node_name:
            # Who asks knows better: it is on no node, or nobody would look for one.
            self._cluster.apply(ObjectDeleted(before.pod))
        if not self._cluster.table.count:
            return None
        served = self._served.get(pod.spec.scheduler_name, self._usual)
        return _Question(served, PodInfo(pod, self._cluster.shapes.shape_of(pod)))


@dataclass(frozen=True, slots=True)
class _Question:
    """One pod before the plugins of one profile."""

    served: Served
    pod: PodInfo

    def found(self) -> Feasibility:
        """The verdicts on all nodes. Raises AdviserError."""
        found = find_nodes_that_fit(self.served.plans, self.pod)
        _demand(found.error())
        return found

    def shares(self, nodes: Sequence[str]) -> dict[str, float]:
        """By node that fits, its share of the highest total that there could be."""
        found = self.found()
        table, plan = found.plan.table, found.plan
        known = [node for name in nodes if (node := table.find(name)) is not None]
        fitting = [plan.position(node.row) for node in known if found.is_feasible(node)]
        highest = SCORE_MAX * sum(self.served.framework.weights().values())
        if not fitting or not highest:
            return {}
        found.keep(np.array(fitting, np.int64))
        ranked = explain_scores(self.served.plans, self.pod, found)
        _demand(ranked.error)
        rows = plan.rows[ranked.positions].tolist()
        totals = zip(rows, ranked.totals.tolist(), strict=True)
        return {table.at(row).name: total / highest for row, total in totals}

    def has_room(self, found: Feasibility, node: NodeInfo, uids: Sequence[str]) -> bool:
        """Whether the pod fits `node` without the pods `uids`. Raises AdviserError."""
        if found.rejected is not None or _is_out_of_question(found, node):
            return False
        leaving = [other for other in node.pods.values() if other.uid in uids]
        try:
            with self.served.framework.trial(found.state, self.pod) as trial:
                for other in leaving:
                    trial.remove(other, node)
                verdict = trial.verdict(node)
        except PluginFault as fault:
            raise AdviserError(str(fault)) from None
        if verdict is not None and verdict.code is Code.ERROR:
            raise AdviserError(verdict.message)
        return verdict is None


def _is_out_of_question(found: Feasibility, node: NodeInfo) -> bool:
    """A PreFilter has named others."""
    at = found.plan.position(node.row)
    return at is None or bool(found.codes[at] < 0)


def _demand(failure: Status | None) -> None:
    if failure is not None:
        raise AdviserError(failure.message)
