"""Divides pending pods among kinds of nodes, if no single kind admits all of them.

A node admits the pods of a workload if its labels match their node selector and required node
affinity, and if they tolerate its taints. Workloads share a kind if one node admits the pods of all
these workloads.

    web needs pool=general, db needs pool=db                 ->   two kinds
    web tolerates no taint, db needs the tainted pool=db     ->   two kinds
    web needs no label, db needs pool=db, without a taint    ->   one kind: nodes with pool=db
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import gcd

from msgspec import Struct

from fairlead.api.nodes.node_selector import required_node_affinity, required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import PodSpec, Taint
from fairlead.api.well_known_label import HOSTNAME
from fairlead.whatif.next_steps.new_nodes import NewNodes, new_nodes_for
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.next_steps.volume_reach import VolumeReach
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef


class NodeKind(Struct, frozen=True):
    """Pods, and the nodes that admit all of them.

    `admits` is set if the labels and taints of `nodes` are known to admit the pods.
    """

    pods: list[PodEnd]
    nodes: list[NodeEnd]
    admits: bool = False

    def new_nodes(self, known: Sequence[NodeEnd], left: Collection[str] = ()) -> NewNodes | None:
        """Return new nodes with room for the pods: copies of one of `nodes`.

        `new_nodes_for` explains `known` and `left`, and when the result is None.
        """
        return new_nodes_for(self.pods, self.nodes, known, left=left, admits=self.admits)


class NodeAdmission:
    """Decides whether copies of nodes admit the pods of `workloads`."""

    def __init__(self, workloads: Iterable[WorkloadRef], context: StepContext) -> None:
        self._specs = context.changed_specs(frozenset(workloads))
        self._taints = context.lasting_taints

    def is_known(self, workload: WorkloadRef) -> bool:
        """Return whether the rules of the pods of `workload` are known."""
        return workload in self._specs

    def admits(self, node: NodeEnd, workload: WorkloadRef) -> bool:
        """Return whether labels and taints of a copy of `node` admit the pods of `workload`.

        The result is True if the rules of the pods are not known.
        """
        return _admits(node, self._taints.get(node.name, ()), self._specs.get(workload))


def kinds_for(
    pods: Sequence[PodEnd],
    nodes: Sequence[NodeEnd],
    context: StepContext,
    reach: VolumeReach | None = None,
) -> list[NodeKind]:
    """Return `pods`, divided among kinds of `nodes`; the kind of the largest pods comes first.

    The pods of a workload belong to a kind whose nodes admit them. If the rules of a workload are
    not known, or if no node admits its pods, all `nodes` are assumed to admit them. `reach` decides
    which nodes reach the volumes of the pods, so pods of one workload can be of several kinds, for
    example one for each zone. Pods whose volumes no node reaches are left out.
    """
    by_workload: dict[WorkloadRef, list[PodEnd]] = {}
    for pod in pods:
        by_workload.setdefault(pod.workload, []).append(pod)
    admission = NodeAdmission(by_workload, context)
    found: list[NodeKind] = []
    for ref in sorted(by_workload, key=lambda ref: (_largest(by_workload[ref]), ref)):
        admitting = [one for one in nodes if admission.admits(one, ref)]
        admits = bool(admitting) and admission.is_known(ref)
        groups = [(by_workload[ref], admitting or list(nodes))]
        if reach is not None:
            groups = list(reach.groups(*groups[0]))
        for own_pods, own in groups:
            add_to_kinds(found, NodeKind(own_pods, own, admits))
    return found


def add_to_kinds(found: list[NodeKind], new: NodeKind) -> None:
    """Add the pods of `new` to the first of the kinds `found` that shares nodes with `new`.

    If several kinds exist only because the pods of one workload have volumes in several zones, each
    pod is added to the kind that has the smallest requests so far. If no kind shares nodes with
    `new`, then `new` becomes a further kind.
    """
    names = {one.name for one in new.nodes}
    sharing = [
        number for number, kind in enumerate(found) if any(one.name in names for one in kind.nodes)
    ]
    if not sharing:
        found.append(new)
        return
    workload = found[sharing[0]].pods[0].workload
    alike = [number for number in sharing if found[number].pods[0].workload == workload]
    cpu = {number: _cpu(found[number].pods) for number in alike}
    added: dict[int, list[PodEnd]] = {}
    for pod in new.pods:
        least = min(alike, key=lambda number: (cpu[number], number))
        cpu[least] += _cpu([pod])
        added.setdefault(least, []).append(pod)
    # A kind that gets some of the pods keeps only the nodes that also suit these pods.
    for number, pods in added.items():
        kind = found[number]
        shared = [one for one in kind.nodes if one.name in names]
        found[number] = NodeKind([*kind.pods, *pods], shared, kind.admits and new.admits)


def _cpu(pods: Iterable[PodEnd]) -> int:
    return sum(pod.requests.get("cpu", 0) for pod in pods)


def admit_all(nodes: Iterable[NodeEnd], pods: Iterable[PodEnd], context: StepContext) -> bool:
    """Return whether each of `nodes` admits all `pods`.

    Workloads that the user's what-if may change count as admitted.
    """
    workloads = {pod.workload for pod in pods}
    admission = NodeAdmission(workloads, context)
    return all(admission.admits(node, ref) for node in nodes for ref in workloads)


def mixed(counts: Mapping[str, int]) -> NewNodes:
    """Return new nodes of several kinds; `counts` maps each node to the number of its copies.

    --like copies several nodes in turn. So the copies of one turn have the same ratio as `counts`.
    """
    turns = gcd(*counts.values())
    each = ((name, count // turns) for name, count in sorted(counts.items()))
    like = ",".join(name if count == 1 else f"{name}:{count}" for name, count in each)
    return NewNodes(sum(counts.values()), like)


def nodes_of_kinds(
    kinds: Iterable[NodeKind], known: Sequence[NodeEnd], left: Iterable[str]
) -> Counter[str]:
    """Return how many copies of which nodes would hold the pods of `kinds`.

    `known` and `left` are arguments of `new_nodes_for`. Kinds without a suitable node are left out.
    """
    origins, counts = frozenset(left), Counter[str]()
    for kind in kinds:
        more = kind.new_nodes(known, origins)
        if more is not None:
            counts[more.like] += more.count
    return counts


def _largest(pods: Iterable[PodEnd]) -> tuple[int, int]:
    """Return a sort key by which workloads with larger pods come first."""
    return min((-pod.requests.get("cpu", 0), -pod.requests.get("memory", 0)) for pod in pods)


def _admits(node: NodeEnd, taints: Sequence[Taint], spec: PodSpec | None) -> bool:
    """Return whether a copy of `node` with `taints` admits pods with `spec`.

    The result is True if `spec` is None.
    """
    if spec is None:
        return True
    if find_untolerated(taints, spec.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is not None:
        return False
    if not spec.node_selector and required_node_affinity(spec) is None:
        return True
    labels = {key: value for key, value in node.labels.items() if key != HOSTNAME}
    return required_node_affinity_matches(spec, labels, "")
