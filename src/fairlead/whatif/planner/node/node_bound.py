"""NodeBound: a lower bound on the number of nodes that pods need, whatever their placement is.

sums         for each resource, the fewest nodes whose total capacity covers the pods' requests
groups       the same for the pods that node selectors and taints restrict to certain nodes; if
             groups have no node in common, their bounds are added
exclusion    pods of one workload that exclude each other need a node each

A node whose taints no moving pod tolerates can hold only its present pods. So it counts only with
the amounts that these pods request. For example, a virtual node can state thousands of cores, but
only pods that tolerate its taint can use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import PodAffinityTerm, Taint
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Mask, Rows
from fairlead.engine.plugins.node_affinity import NodeAffinity
from fairlead.engine.plugins.taint_toleration import TaintToleration
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, is_placed_anew

PODS_PER_NODE: Final = "pods per node"
NODE_GROUPS: Final = "groups of nodes"
_ENCODER: Final = msgspec.json.Encoder()


class NodeBound(Struct, frozen=True, order=True):
    """A bound: at least `count` nodes are needed, because of `binds`.

    `binds` is a resource, a workload, PODS_PER_NODE or NODE_GROUPS; "" if `count` is 0.
    """

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
    moving = [
        _Moving(info.row, pod, model.as_replacement(pod))
        for info in table.nodes()
        for pod in info.pods.values()
        if is_placed_anew(pod)
    ]
    sums = _Sums(model, rows, others, moving)
    found = [NodeBound(0), *sums.bounds()]
    workload, count = most_exclusive(one.pod for one in moving if one.new is one.pod)
    found.append(NodeBound(count - int(others.sum()), workload))
    found.append(_disjoint_sum(model, sums, moving))
    largest = max(found, key=lambda one: one.count)  # of equal bounds, that of the first resource
    return min(largest, NodeBound(len(nodes), largest.binds))


class _Moving(Struct, frozen=True):
    """A `pod` on the node in the row `row` of the node table.

    If the node is removed, `new` replaces the pod.
    """

    row: int
    pod: PodInfo
    new: PodInfo


class _Sums:
    """Bounds that compare the sums of requests with the sums of the capacities of nodes.

    `rows` are the rows of the node table with the nodes that may be removed. `others` are the rows
    with the nodes that stay.
    """

    def __init__(
        self, model: ClusterModel, rows: Rows, others: Mask, moving: Sequence[_Moving]
    ) -> None:
        self._model, self._rows, self._others = model, rows, others
        table = model.table
        self._names = [*table.resources.names[: len(table.allocatable)], PODS_PER_NODE]
        capacity = np.vstack([table.allocatable, table.allowed_pods])
        self._held = self._requests(moving)
        # The pods of a node that stays do not move, even if they request more than it has.
        self._sizes = np.maximum(capacity, self._held)
        closed = [model.node(name).row for name in closed_nodes(model, (one.new for one in moving))]
        self._sizes[:, closed] = self._held[:, closed]

    def _requests(self, moving: Iterable[_Moving]) -> npt.NDArray[np.int64]:
        """Return what the pods in `moving` request, as an array of shape (resources + 1, rows).

        The last line of the array is the number of pods on each node.
        """
        table = self._model.table
        held = np.zeros((len(table.allocatable) + 1, table.allocatable.shape[1]), np.int64)
        for one in moving:
            held[-1, one.row] += 1
            load = one.pod.shape.load
            if one.new is not one.pod:
                # The smaller amounts: a pod stays as it is on its node, or is replaced by `new`.
                replaced = dict(one.new.shape.load)
                load = tuple((at, min(amount, replaced.get(at, 0))) for at, amount in load)
            for column, amount in self._model.countable(load):
                held[column, one.row] += amount
        return held

    def bounds(self) -> Iterator[NodeBound]:
        """Yield, for each resource, how many nodes must stay if all pods can run on all nodes."""
        return self._bounds(self._held, self._rows, self._others)

    def within(self, allowed: Mask, moving: Iterable[_Moving]) -> NodeBound:
        """Return the largest bound for pods that can run only on the nodes in `allowed`.

        `moving` are these pods. A pod that is on another node already can stay there, so it does
        not count.
        """
        held = self._requests(one for one in moving if allowed[one.row])
        rows = self._rows[allowed[self._rows]]
        return max(self._bounds(held, rows, self._others & allowed), key=lambda one: one.count)

    def _bounds(self, held: npt.NDArray[np.int64], rows: Rows, others: Mask) -> Iterator[NodeBound]:
        for name, present, sizes in zip(self._names, held, self._sizes, strict=True):
            needed = int(present.sum()) - int(sizes[others].sum())
            yield _by_sum(needed, sizes[rows], name)


def _disjoint_sum(model: ClusterModel, sums: _Sums, moving: Iterable[_Moving]) -> NodeBound:
    """Return a bound for pods that node selectors and taints restrict to groups of nodes.

    The pods are grouped by the nodes on which they can run. If two such sets of nodes have no node
    in common, each needs its own nodes, so their bounds can be added. The sets with the largest
    bounds are added first. The result has NODE_GROUPS as `binds`, because each set can lack another
    resource.
    """
    masks = _AllowedNodes(model)
    groups: dict[bytes, tuple[Mask, list[_Moving]]] = {}
    for one in moving:
        allowed = masks.of(one.new)
        groups.setdefault(allowed.tobytes(), (allowed, []))[1].append(one)
    bounds = [(sums.within(allowed, group), allowed) for allowed, group in groups.values()]
    bounds.sort(key=lambda item: (-item[0].count, item[0].binds, item[1].tobytes()))
    used, total = np.zeros_like(model.table.alive), 0
    for bound, allowed in bounds:
        if not (used & allowed).any():
            used |= allowed
            total += bound.count
    return NodeBound(total, NODE_GROUPS if total else "")


class _AllowedNodes:
    """The nodes of a model on which node selectors and taints allow a pod to run."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._every = np.flatnonzero(model.table.alive)
        self._by_shape: dict[tuple[int, str], Mask] = {}
        self._by_rules: dict[bytes, Mask] = {}
        self._affinity = NodeAffinity()

    def of(self, pod: PodInfo) -> Mask:
        """Return, for each row, whether node selectors and taints allow `pod` on its node."""
        key = id(pod.shape), pod.pod.spec.scheduler_name
        if key not in self._by_shape:
            effects = taint_effects(self._model, pod)
            has_affinity = NodeAffinity.name in _filters(self._model, pod)
            affinity = self._affinity.shape_key(pod.shape) if has_affinity else None
            rules = _ENCODER.encode((affinity, pod.shape.spec.tolerations, effects))
            if rules not in self._by_rules:
                self._by_rules[rules] = self._allowed(pod, effects, has_affinity=has_affinity)
            self._by_shape[key] = self._by_rules[rules]
        return self._by_shape[key]

    def _allowed(self, pod: PodInfo, effects: tuple[str, ...], *, has_affinity: bool) -> Mask:
        table, tolerations = self._model.table, pod.shape.spec.tolerations
        allowed = np.zeros_like(table.alive)
        allowed[self._every] = True
        if has_affinity:
            verdicts = self._affinity.filter_columns(CycleState(), pod, table, self._every)
            allowed[self._every] = verdicts.codes == 0
        for info in table.nodes():
            taints = info.node.spec.taints
            if taints and find_untolerated(taints, tolerations, effects) is not None:
                allowed[info.row] = False
        return allowed


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
    has_filter = TaintToleration.name in _filters(model, pod)
    return (NO_SCHEDULE, NO_EXECUTE) if has_filter else (NO_EXECUTE,)


def _filters(model: ClusterModel, pod: PodInfo) -> set[str]:
    """Return the names of the Filter plugins in the profile of `pod`."""
    return {point.name for point in model.profile_of(pod).framework.filters}


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
    """Return the anti-affinity term of `pod` that keeps equal pods off its node.

    Returns None if there is no such term.
    """
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
