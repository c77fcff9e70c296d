"""Counts the pending pods for which nodes have room, now or with more nodes in service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.batch.info.group import labelled_group
from fairlead.engine.framework.extension_point import original_of
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.scheduling.decision import Decision, Failure, Placement
from fairlead.engine.scheduling.equivalence_cache.equivalence_key import equivalence_key
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.snapshot.node_pool import is_lasting_taint


def single_pods(model: ClusterModel) -> list[PodInfo]:
    """Return the pods that the scheduler would try now, in its order, except members of groups.

    The members of a group start only together, so room for one of them does not count.
    """
    pods = model.waiting_pods()
    return [pod for pod in pods if model.gang_of(pod) is None and not labelled_group(pod.pod)]


def key_of_equal_pods(pod: PodInfo) -> Hashable:
    """Return a key that is the same for pods that fit the same nodes.

    A pod with volumes, ResourceClaims or a nominated node has a key of its own.
    """
    spec, status = pod.pod.spec, pod.pod.status
    is_special = pod.shape.has_volumes or spec.resource_claims or status.nominated_node_name
    return equivalence_key(pod), pod.key if is_special else ""


def place_each(
    model: ClusterModel, pods: Iterable[PodInfo], only: Sequence[str] = ()
) -> tuple[Counter[str], list[PodInfo]]:
    """Place `pods` in `model` in their order; return (placed pods by node, pods that fit no node).

    Nothing is preempted. The pods that fit no node stay pending in `model`. If it is known that
    only certain nodes can have room, `only` names these nodes. For most pods that are too large for
    these nodes, a comparison of requests replaces the scheduling cycle, because it is much faster.
    """
    placed, left = Counter[str](), list[PodInfo]()
    # The keys of pods that fit no node. Until another pod is placed, equal pods fit no node either.
    failed = set[Hashable]()
    # Placed pods only lower these amounts, so they are computed again only when a pod fits no node.
    (cpu, memory), is_current = _most_free(model, only), True
    for pod in pods:
        is_large = only and (pod.shape.milli_cpu > cpu or pod.shape.memory > memory)
        if is_large and not _depends_on_others(model, pod):
            left.append(pod)
            continue
        equal = key_of_equal_pods(pod)
        if equal not in failed:
            decision = model.schedule(pod)
            if isinstance(decision, Placement):
                placed[decision.node.name] += 1
                failed.clear()
                is_current = False
                continue
            failed.add(equal)
            if not is_current:
                (cpu, memory), is_current = _most_free(model, only), True
        left.append(pod)
    return placed, left


def failure_messages(model: ClusterModel, pods: Iterable[PodInfo]) -> Iterator[str]:
    """Yield why the scheduler finds no node for `pods` in `model`: a message for each pod.

    Of pods that fit the same nodes, only one is tried. Pods that do find a node are left out.
    """
    known: dict[Hashable, Decision] = {}
    for pod in pods:
        equal = key_of_equal_pods(pod)
        decision = known[equal] if equal in known else known.setdefault(equal, model.schedule(pod))
        if isinstance(decision, Failure):
            yield decision.message


def _most_free(model: ClusterModel, nodes: Sequence[str]) -> tuple[int, int]:
    """Return the largest free CPU, and the largest free memory, of any of `nodes`.

    CPU is in millicores, and memory in bytes. Return -1 for both if no node allows a further pod,
    so that not even a pod without requests fits.
    """
    found = [model.node(name) for name in nodes]
    usable = [one for one in found if len(one.pods) < one.allowed_pods]
    if not usable:
        return -1, -1
    cpu, memory = (max(one.free_of(column) for one in usable) for column in (CPU, MEMORY))
    return max(cpu, 0), max(memory, 0)


def _depends_on_others(model: ClusterModel, pod: PodInfo) -> bool:
    """Return whether the start of another pod can make a node suitable for `pod`.

    The result is also True if the profile has a plugin that may depend on anything, such as a
    user's plugin.
    """
    spec, profile = pod.pod.spec, model.profile_of(pod)
    spread = original_of(profile.framework.find(PodTopologySpread.name))
    has_defaults = isinstance(spread, PodTopologySpread) and spread.enforced_default_keys
    return bool(
        (spec.affinity and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity))
        or spec.topology_spread_constraints
        or spec.resource_claims
        or pod.shape.has_volumes
        or has_defaults
        or not profile.is_stateless
    )


def room_if_returned(model: ClusterModel, nodes: Iterable[str], pods: Sequence[PodInfo]) -> int:
    """Return how many of the pending `pods` would run if `nodes` were back in service.

    A node that is back in service is Ready, not cordoned and without temporary taints, and its
    terminating pods have stopped. The model is unchanged afterwards.
    """
    names, stopped = list(nodes), 0
    with model.hypothesis():
        for name in names:
            info = model.node(name)
            for pod in [one for one in info.pods.values() if is_terminating(one.pod)]:
                model.remove(pod)
                stopped += 1
            model.put_node(_in_service(info.node))
        # A stopped pod, or a nominated pod that gets another node, can make room on other nodes.
        is_alone = not stopped and not any(one.pod.status.nominated_node_name for one in pods)
        placed, _ = place_each(model, pods, names if is_alone else ())
    return placed.total()


def _in_service(node: Node) -> Node:
    taints = tuple(one for one in node.spec.taints if is_lasting_taint(one.key))
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
