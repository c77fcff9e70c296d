"""Whether a pending pod still gets its room if other pending pods are tried first.

An explanation evaluates one pod alone. But the scheduler tries pods of higher priority first. Pods
of equal priority are tried in the order of their last attempts, which a dump does not show. So all
other pending pods of at least the pod's priority may take the room that an explanation promises.
These pods are called rivals here. A rival with another schedulerName may be in the queue of another
scheduler, so it may be tried after the pod, even with a higher priority.

upstream: pkg/scheduler/framework/plugins/queuesort/priority_sort.go: Less
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec.structs import replace

from fairlead.api.text.name_list import listed
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.explain.room_for_pending import key_of_equal_pods, place_each, single_pods
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.node_copy import copy_node
from fairlead.whatif.planner.refusal import NewNode, find_larger_node, nodes_of_each_zone

NODES_MAX: Final = 10


def refusal_after_rivals(model: ClusterModel, pod: PodInfo) -> str:
    """Return a sentence if rivals can take the room of the pending `pod`, which fits a node now.

    Return "" if `pod` fits a node even after all rivals. The model is unchanged afterwards.
    """
    with model.hypothesis():
        rivals = _rivals(model, pod)
        left = {one.key for one in place_each(model, rivals)[1]}
        placed = [one for one in rivals if one.key not in left]
        if not placed:
            return ""
        decision = model.schedule(pod)
        if isinstance(decision, Placement):
            return ""
    names = listed([one.key for one in placed])
    one = len(placed) == 1
    then = f"this pod fits no node: {short_reason(decision.message)}."
    queue = pod.pod.spec.scheduler_name
    if all(one.priority > pod.priority and one.pod.spec.scheduler_name == queue for one in placed):
        come, take = (
            ("pod of higher priority comes", "takes")
            if one
            else ("pods of higher priority come", "take")
        )
        return f"But {len(placed):,} pending {come} first and {take} room: {names}. Then {then}"
    is_, pods = ("is", "pod") if one else ("are", "pods")
    return (
        f"If {len(placed):,} other pending {pods} of at least its priority {is_} placed first "
        f"({names}), {then}"
    )


def nodes_after_rivals(
    model: ClusterModel, pod: PodInfo, new: NewNode
) -> tuple[NewNode, NewNode | None]:
    """Return (new nodes with which `pod` is placed even after all rivals, larger new nodes).

    The first value contains copies of the node of `new`. If fewer new nodes in several zones are
    enough, the first value contains copies of similar nodes in these zones instead. The second
    value contains larger nodes if fewer of them are enough; otherwise it is None. The model is
    unchanged afterwards.
    """
    alike = with_count(model, pod, new)
    found = _fewer_of_several_zones(model, pod, alike) or alike
    return found, fewer_larger_nodes(model, pod, replace(alike, count=found.count))


def with_count(model: ClusterModel, pod: PodInfo, new: NewNode) -> NewNode:
    """Return `new` with the number of copies with which `pod` is placed even after all rivals.

    If NODES_MAX copies are not enough, the number is 0. Rivals that would preempt other pods do not
    wait for new nodes. The model is unchanged afterwards.
    """
    with model.hypothesis():
        _, left = place_each(model, _rivals(model, pod))
        left = _without_preemptors(model, left)
        originals = [model.node(name) for name in new.likes]
        for count in range(1, NODES_MAX + 1):
            original = originals[(count - 1) % len(originals)]
            copy_node(model, original, f"{original.name}-copy").add_to(model)
            _, left = place_each(model, left)
            if isinstance(model.schedule(pod), Placement):
                return replace(new, count=count)
    return replace(new, count=0)


def fewer_larger_nodes(model: ClusterModel, pod: PodInfo, new: NewNode) -> NewNode | None:
    """Return fewer but larger nodes that are enough instead of `new`; None if none are found.

    `new` is a result of `with_count`. Only copies of the largest node are tried
    (`find_larger_node`). The model is unchanged afterwards.
    """
    if new.count == 1:
        return None
    like = find_larger_node(model, pod, new.like)
    if not like:
        return None
    larger = with_count(model, pod, NewNode((like,)))
    is_fewer = larger.count and (not new.count or larger.count < new.count)
    return larger if is_fewer else None


def _fewer_of_several_zones(model: ClusterModel, pod: PodInfo, new: NewNode) -> NewNode | None:
    """Return new nodes in several zones if fewer nodes than in `new` are enough; otherwise None.

    `new` is a result of `with_count` with one node to copy. Rivals that are spread over zones may
    leave no room in the zone of this node. The model is unchanged afterwards.
    """
    if new.count == 1:
        return None
    names = tuple(nodes_of_each_zone(model, new.like))
    if len(names) == 1:
        return None
    # The first of `names` is the node of `new`.
    several = with_count(model, pod, replace(new, likes=names))
    if not several.count or (new.count and several.count >= new.count):
        return None
    return replace(several, likes=names[: several.count])


def _rivals(model: ClusterModel, pod: PodInfo) -> list[PodInfo]:
    """Return the rivals of the pending `pod`, by priority.

    Members of groups are left out, because it is unknown when their groups start.
    """
    every = (one for one in single_pods(model) if one.key != pod.key)
    return [one for one in every if one.priority >= pod.priority]


def _without_preemptors(model: ClusterModel, pods: list[PodInfo]) -> list[PodInfo]:
    """Return those of `pods` that would not preempt other pods.

    All of `pods` must be pending, and none of them fits a node.
    """
    preempts: dict[Hashable, bool] = {}
    found = []
    for pod in pods:
        equal = key_of_equal_pods(pod)
        if equal not in preempts:
            with model.hypothesis(), model.preempting():
                decision = model.schedule(pod)
            can = isinstance(decision, Placement) or decision.post_filter_result is not None
            preempts[equal] = can
        if not preempts[equal]:
            found.append(pod)
    return found
