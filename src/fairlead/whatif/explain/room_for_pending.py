"""Counts the pending pods for which nodes have room, now or if nodes returned to service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.batch.info.group import labelled_group
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.equivalence_cache.equivalence_key import equivalence_key
from fairlead.engine.state.pod_info import PodInfo
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

    A pod with claims is equal to no other pod, and neither is a pod with a nominated node.
    """
    spec, status = pod.pod.spec, pod.pod.status
    is_special = pod.shape.has_volumes or spec.resource_claims or status.nominated_node_name
    return equivalence_key(pod), pod.key if is_special else ""


def place_each(model: ClusterModel, pods: Iterable[PodInfo]) -> tuple[Counter[str], list[PodInfo]]:
    """Place `pods` in `model` in their order; return (placed pods by node, pods that fit no node).

    Nothing is preempted. The pods that fit no node stay pending in `model`.
    """
    placed, left = Counter[str](), list[PodInfo]()
    # The keys of pods that fit no node. Until another pod is placed, equal pods fit no node either.
    failed = set[Hashable]()
    for pod in pods:
        equal = key_of_equal_pods(pod)
        if equal not in failed:
            decision = model.schedule(pod)
            if isinstance(decision, Placement):
                placed[decision.node.name] += 1
                failed.clear()
                continue
            failed.add(equal)
        left.append(pod)
    return placed, left


def room_if_returned(model: ClusterModel, nodes: Iterable[str], pods: Sequence[PodInfo]) -> int:
    """Return how many of the pending `pods` would run if `nodes` were back in service.

    The nodes are then Ready, not cordoned and without temporary taints, and their terminating pods
    have stopped. The model is unchanged afterwards.
    """
    with model.hypothesis():
        for name in nodes:
            info = model.node(name)
            for pod in [one for one in info.pods.values() if is_terminating(one.pod)]:
                model.remove(pod)
            model.put_node(_in_service(info.node))
        placed, _ = place_each(model, pods)
    return placed.total()


def _in_service(node: Node) -> Node:
    taints = tuple(one for one in node.spec.taints if is_lasting_taint(one.key))
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
