"""NodeBound: a lower limit of the number of nodes for the pods, whatever their placement.

sums         for each resource, the fewest nodes whose sum covers the pods' requests
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, moves_with_drain

HOSTNAME: Final = "kubernetes.io/hostname"
PODS_PER_NODE: Final = "pods per node"


@dataclass(frozen=True, slots=True, order=True)
class NodeBound:
    """At least `count` nodes are needed, because of `binds`: a resource, or a workload."""

    count: int
    binds: str = ""


def fewest_nodes(model: ClusterModel, nodes: Sequence[str]) -> NodeBound:
    """The fewest of `nodes` that must stay, if all other nodes stay too.

    Pods of DaemonSets are left out, since they go with their nodes.
    """
    table = model.table
    rows = np.array([model.node(name).row for name in nodes], np.int64)
    others = table.alive.copy()
    others[rows] = False
    moving, needed = _load(model)
    found = [NodeBound(0)]
    for column, name in enumerate(table.resources.names[: len(table.allocatable)]):
        sizes = table.allocatable[column]
        found.append(_by_sum(needed[column] - int(sizes[others].sum()), sizes[rows], name))
    room = table.allowed_pods
    found.append(_by_sum(moving - int(room[others].sum()), room[rows], PODS_PER_NODE))
    workload, count = most_exclusive(model.pods())
    found.append(NodeBound(count - int(others.sum()), workload))
    return min(max(found), NodeBound(len(nodes), max(found).binds))


def _by_sum(needed: int, sizes: np.ndarray, name: str) -> NodeBound:
    """Return the fewest of the largest `sizes` whose sum is at least `needed`."""
    if needed <= 0:
        return NodeBound(0)
    reached = np.cumsum(np.sort(sizes)[::-1])
    return NodeBound(int(np.searchsorted(reached, needed)) + 1, name)


def _load(model: ClusterModel) -> tuple[int, list[int]]:
    """Return the number of pods that a drain would move, and their requests by column."""
    needed = [0] * len(model.table.allocatable)
    count = 0
    for info in model.table.nodes():
        for pod in info.pods.values():
            if moves_with_drain(pod):
                count += 1
                for column, amount in pod.shape.load:
                    needed[column] += amount
    return count, needed


def most_exclusive(pods: Iterable[PodInfo]) -> tuple[str, int]:
    """(workload, number of its pods) of the workload that needs most nodes for itself.

    ("", 0) if no workload excludes itself from nodes.
    """
    counts: dict[str, int] = {}
    excludes: dict[int, bool] = {}
    for pod in pods:
        shape = pod.shape.id
        if shape not in excludes:
            excludes[shape] = _excludes_itself(pod)
        if excludes[shape] and moves_with_drain(pod):
            workload = str(workload_of(pod.pod))
            counts[workload] = counts.get(workload, 0) + 1
    return max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))


def _excludes_itself(pod: PodInfo) -> bool:
    affinity = pod.shape.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    if anti is None:
        return False
    return any(
        term.topology_key == HOSTNAME
        and not term.namespaces
        and term.namespace_selector is None
        and selector_matches(term.label_selector, pod.labels)
        for term in anti.required_during_scheduling_ignored_during_execution
    )
