"""NodeBound: a lower bound on the number of nodes that pods need, whatever their placement is.

sums         for each resource, the fewest nodes whose total capacity covers the pods' requests
exclusion    pods of one workload that exclude each other need a node each

A node whose taints no moving pod tolerates can hold only its present pods. So it counts only with
the amounts that these pods request. For example, a virtual node can state thousands of cores, but
only pods that tolerate its taint can use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import PodAffinityTerm, Taint
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.plugins.taint_toleration import TaintToleration
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, is_placed_anew

PODS_PER_NODE: Final = "pods per node"


class NodeBound(Struct, frozen=True, order=True):
    """A bound: at least `count` nodes are needed; the resource or workload `binds` needs them."""

    count: int
    binds: str = ""


def fewest_nodes(model: ClusterModel, nodes: Sequence[str]) -> NodeBound:
    """Return a lower bound on how many of `nodes` must stay, so that their pods have room.

    All other nodes of the cluster stay. The bound considers only the pods that a controller would
    replace after a drain.
    """
    table = model.table
    table.widen()
    rows = np.array([model.node(name).row for name in nodes], np.int64)
    others = table.alive.copy()
    others[rows] = False
    held = np.zeros_like(table.allocatable)  # the requests of these pods, by column and row
    held_pods = np.zeros_like(table.allowed_pods)
    alike: list[PodInfo] = []
    moving = [
        (info.row, pod, model.as_replacement(pod))
        for info in table.nodes()
        for pod in info.pods.values()
        if is_placed_anew(pod)
    ]
    closed = [model.node(name).row for name in closed_nodes(model, (new for *_, new in moving))]
    for row, pod, new in moving:
        held_pods[row] += 1
        load = pod.shape.load
        if new is pod:
            alike.append(pod)
        else:  # the smaller amounts: a pod stays as it is on its node, or is replaced by `new`
            replaced = dict(new.shape.load)
            load = tuple((at, min(amount, replaced.get(at, 0))) for at, amount in load)
        for column, amount in model.countable(load):
            held[column, row] += amount
    names = [*table.resources.names[: len(table.allocatable)], PODS_PER_NODE]
    amounts = [*zip(table.allocatable, held, strict=True), (table.allowed_pods, held_pods)]
    found = [NodeBound(0)]
    for name, (allocatable, present) in zip(names, amounts, strict=True):
        # The pods of a node that stays do not move, even if they request more than it has.
        sizes = np.maximum(allocatable, present)
        sizes[closed] = present[closed]
        needed = int(present.sum()) - int(sizes[others].sum())
        found.append(_by_sum(needed, sizes[rows], name))
    workload, count = most_exclusive(alike)
    found.append(NodeBound(count - int(others.sum()), workload))
    largest = max(found, key=lambda one: one.count)  # of equal bounds, that of the first resource
    return min(largest, NodeBound(len(nodes), largest.binds))


def closed_nodes(model: ClusterModel, pods: Iterable[PodInfo]) -> list[str]:
    """Return the nodes whose taints exclude every pod in `pods`."""
    shapes = {(id(pod.shape), pod.pod.spec.scheduler_name): pod for pod in pods}
    rules = {(pod.shape.spec.tolerations, taint_effects(model, pod)) for pod in shapes.values()}
    known: dict[tuple[Taint, ...], bool] = {(): False}
    closed = []
    for info in model.table.nodes():
        taints = info.node.spec.taints
        if taints not in known:
            known[taints] = all(find_untolerated(taints, *rule) is not None for rule in rules)
        if known[taints]:
            closed.append(info.name)
    return closed


def taint_effects(model: ClusterModel, pod: PodInfo) -> tuple[str, ...]:
    """Return the taint effects that can keep `pod` off a node.

    NoSchedule is one of these effects only if the profile of `pod` has the plugin TaintToleration.
    """
    filters = {point.name for point in model.profile_of(pod).framework.filters}
    return (NO_SCHEDULE, NO_EXECUTE) if TaintToleration.name in filters else (NO_EXECUTE,)


def _by_sum(needed: int, sizes: np.ndarray, name: str) -> NodeBound:
    """Return the minimum number of nodes whose `sizes` of resource `name` add up to `needed`."""
    if needed <= 0:
        return NodeBound(0)
    reached = np.cumsum(np.sort(sizes)[::-1])
    return NodeBound(int(np.searchsorted(reached, needed)) + 1, name)


def most_exclusive(pods: Iterable[PodInfo]) -> tuple[str, int]:
    """Return (workload, number of nodes) of the workload whose pods need the most nodes.

    Only pods that exclude each other by anti-affinity are counted: each of them needs its own node.
    Return ("", 0) if no workload has such pods.
    """
    groups: dict[str, list[list[PodAffinityTerm]]] = {}
    for pod in pods:
        term = _excluding_term(pod)
        if term is not None:
            known = groups.setdefault(str(workload_of(pod.pod)), [])
            equal = next((terms for terms in known if terms[0] == term), None)
            if equal is None:
                known.append([term])
            else:
                equal.append(term)
    largest = ((workload, max(map(len, known))) for workload, known in groups.items())
    return max(largest, key=lambda item: (item[1], item[0]), default=("", 0))


def _excluding_term(pod: PodInfo) -> PodAffinityTerm | None:
    """Return the anti-affinity term of `pod` that keeps equal pods off its node, or None."""
    affinity = pod.shape.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    if anti is None:
        return None
    terms = anti.required_during_scheduling_ignored_during_execution
    return next((term for term in terms if _is_about_own_node(term, pod)), None)


def _is_about_own_node(term: PodAffinityTerm, pod: PodInfo) -> bool:
    return (
        term.topology_key == HOSTNAME
        and not term.namespaces
        and term.namespace_selector is None
        and selector_matches(term.label_selector, pod.labels)
    )
