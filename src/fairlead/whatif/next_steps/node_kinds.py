"""Divides pending pods among kinds of nodes, if no single kind admits all of them.

A node admits the pods of a workload if its labels match their node selector and required node
affinity, and if they tolerate its taints. Workloads share a kind if one node admits the pods of all
these workloads.

    web needs pool=general, db needs pool=db                 ->   two kinds
    web tolerates no taint, db needs the tainted pool=db     ->   two kinds
    web admits any node, db needs pool=db, without a taint   ->   one kind: nodes with pool=db
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import gcd

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.nodes.node_selector import required_node_affinity, required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import PodSpec, Taint
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import NODE
from fairlead.whatif.next_steps.new_nodes import NewNodes, new_nodes_for
from fairlead.whatif.next_steps.step_context import StepContext, is_named
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import is_lasting_taint
from fairlead.whatif.snapshot.samples import samples


class NodeKind(Struct, frozen=True):
    """Pods, and the nodes that admit all of them."""

    pods: list[PodEnd]
    nodes: list[NodeEnd]


def kinds_for(
    pods: Sequence[PodEnd], nodes: Sequence[NodeEnd], context: StepContext
) -> list[NodeKind]:
    """Return `pods`, divided among kinds of `nodes`; the kind of the largest pods comes first.

    Workloads that the user's what-if may change, and workloads that no node admits, count as
    admitted by all `nodes`.
    """
    by_workload: dict[WorkloadRef, list[PodEnd]] = {}
    for pod in pods:
        by_workload.setdefault(pod.workload, []).append(pod)
    if len(by_workload) < 2:
        return [NodeKind(list(pods), list(nodes))]
    specs = _specs(by_workload, context)
    taints = _taints(context.manifests)
    found: list[NodeKind] = []
    for ref in sorted(by_workload, key=lambda ref: (_largest(by_workload[ref]), ref)):
        own = [one for one in nodes if _admits(one, taints.get(one.name, ()), specs.get(ref))]
        names = {one.name for one in own or nodes}
        for number, kind in enumerate(found):
            shared = [one for one in kind.nodes if one.name in names]
            if shared:
                found[number] = NodeKind([*kind.pods, *by_workload[ref]], shared)
                break
        else:
            found.append(NodeKind(by_workload[ref], own or list(nodes)))
    return found


def admit_all(nodes: Iterable[NodeEnd], pods: Iterable[PodEnd], context: StepContext) -> bool:
    """Return whether each of `nodes` admits all `pods`.

    Workloads that the user's what-if may change count as admitted.
    """
    specs, taints = _specs({pod.workload for pod in pods}, context), _taints(context.manifests)
    return all(
        _admits(node, taints.get(node.name, ()), spec) for node in nodes for spec in specs.values()
    )


def mixed(counts: Mapping[str, int]) -> NewNodes:
    """Return new nodes of several kinds; `counts` has the number of copies of each node.

    --like copies its nodes in turn, so the copies of one turn have the same ratio as `counts`.
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
        more = new_nodes_for(kind.pods, kind.nodes, known, left=origins)
        if more is not None:
            counts[more.like] += more.count
    return counts


def _largest(pods: Iterable[PodEnd]) -> tuple[int, int]:
    """Return a sort key by which workloads with larger pods come first."""
    return min((-pod.requests.get("cpu", 0), -pod.requests.get("memory", 0)) for pod in pods)


def _specs(workloads: Iterable[WorkloadRef], context: StepContext) -> dict[WorkloadRef, PodSpec]:
    """Return the specs of the pods of the `workloads` that the user's what-if does not change."""
    change, refs = context.answer.change, frozenset(workloads)
    if change.apply:
        return {}
    kept = [ref for ref in refs if not (context.has(ref) and is_named(ref.name, change.set))]
    found = context.pod_specs(kept)
    return {ref: decode_as(PodSpec, spec) for ref, spec in found.items()}


def _taints(manifests: Iterable[Manifest]) -> dict[str, tuple[Taint, ...]]:
    """Return the taints that a copy of each node of the snapshot has, by the name of the node."""
    return {
        one.ref.name: tuple(taint for taint in one.node.spec.taints if is_lasting_taint(taint.key))
        for one in samples(manifests)
        if one.kind is NODE
    }


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
