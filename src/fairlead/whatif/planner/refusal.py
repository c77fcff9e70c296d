"""Refusal: a reason why nodes refuse a pod, with the smallest change that makes one accept it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.remedy.search import find_remedy
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.node_copy import copy_node
from fairlead.whatif.planner.node.readiness import is_ready

# The number of nodes for which a change is searched; each is verified by a trial of milliseconds.
REMEDIES_MAX: Final = 200
_COPIES_MAX: Final = 8  # number of nodes of which one more is tried


class Refusal(Struct, frozen=True):
    """A reason for which `nodes` nodes refuse a pod; `plugin` is "" if several plugins refuse.

    `change` names one of these nodes and the smallest change with which the pod would fit there, or
    proposes one more node like one of these; "" if no such change was searched or found.
    """

    plugin: str
    reason: str
    nodes: int
    change: str


def siblings_of(pod: PodInfo) -> Callable[[PodInfo], bool]:
    """Return whether a pod has the workload of `pod`, as a function.

    No change that helps `pod` deletes such a pod: its controller would create it again, and the new
    pod would need the same place.
    """
    workload = workload_of(pod.pod)
    return lambda other: workload_of(other.pod) == workload


def _fits_copy(model: ClusterModel, pod: PodInfo, node: NodeInfo) -> bool:
    with model.hypothesis():
        copy_node(model, node, f"{node.name}-copy").add_to(model)
        return isinstance(model.schedule(pod), Placement)


def refusals_of(model: ClusterModel, pod: PodInfo, *, changes: bool = True) -> list[Refusal]:
    """Return the reasons why nodes refuse `pod` now, most nodes first.

    If no node takes the pod and `changes` is set, each reason has the smallest change that makes
    one of its nodes take it. If no reason has such a change, one more node is tried. Only the first
    REMEDIES_MAX nodes are searched. Nodes that are not Ready are not searched, because the pod
    would not start there.
    """
    built = model.profile_of(pod)
    diagnosis = find_nodes_that_fit(built.plans, pod).diagnosis()
    counts: Counter[tuple[str, str]] = Counter()
    for status, nodes in diagnosis.counts():
        for reason in status.reasons:
            counts[status.plugin, reason] += nodes
    remedies: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    fits_nowhere = sum(nodes for _, nodes in diagnosis.counts()) == model.table.count
    if changes and fits_nowhere:
        searched = [one for one in model.table.nodes() if is_ready(one.node)][:REMEDIES_MAX]
        is_sibling = siblings_of(pod)
        statuses = {node.name: diagnosis.status_of(node.row) for node in searched}
        for node in searched:
            status = statuses[node.name]
            remedy = find_remedy(built.framework, pod, node, status, keeps=is_sibling)
            if remedy is not None:
                found = len(remedy.changes), f"{node.name}: {remedy.what}"
                for reason in status.reasons:
                    remedies[status.plugin, reason].append(found)
        for node in () if remedies else searched[:_COPIES_MAX]:
            if _fits_copy(model, pod, node):
                status = statuses[node.name]
                for reason in status.reasons:
                    remedies[status.plugin, reason].append((1, f"add a node like {node.name}"))
                break
    return [
        Refusal(*key, nodes, min(remedies[key], default=(0, ""))[1])
        for key, nodes in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
