"""Whether the PodGroup of an explained pod can start, and with how many new nodes it could.

If the feature gate GenericWorkload is on, a pod of a PodGroup is bound only if its group can start.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.status import Status
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.plugins.gang_scheduling import gang_minimum
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.scheduling.pod_group.placement import PodGroupMember, schedule_pod_group
from fairlead.engine.scheduling.pod_group.preemption import preempt_for_group
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.node_copy import copy_node


class PodGroupTrial(Struct, frozen=True):
    """Whether the PodGroup `group` can start; `note` says so in sentences."""

    group: str
    can_start: bool
    fitting: int  # the number of unscheduled pods that fit together
    waiting: int  # the number of the group's unscheduled pods
    note: str
    victims: tuple[PodInfo, ...] = ()  # the pods that the group as a whole would preempt to start


def try_pod_group(built: BuiltProfile, pod: PodInfo) -> PodGroupTrial | None:
    """Try to place the waiting pods of the PodGroup of `pod`; return the result.

    Returns None if the pod has no PodGroup. If the gate WorkloadAwarePreemption is on and the group
    cannot start, preemption for the whole group is tried. The trial uses no extenders.
    """
    groups = built.framework.cluster.pod_groups
    group = groups.group_of(pod)
    if group is None:
        return None
    waiting = sorted(groups.unscheduled(group.key), key=lambda one: -one.priority)
    members = [PodGroupMember(QueuedPod(one, 0, 0), one) for one in waiting]
    silent = replace(built, extenders=())
    trial = schedule_pod_group(silent, members, TieBreak(0), 0, runs_post_filter=False)
    result = run_consultation(trial)
    fitting = sum(bool(attempt.node) for attempt in result.attempts)
    pods = counted(len(waiting), "waiting pod")
    verdict = "can start" if result.status.is_success else "cannot start, so none of them is bound"
    together = f"The scheduler tries the {pods} of PodGroup {group.key} together."
    fit = "fits" if fitting == 1 else "fit"
    note = f"{together} Without preemption, {fitting} of them {fit}, and the group {verdict}."
    found = PodGroupTrial(group.key, result.status.is_success, fitting, len(waiting), note)
    if found.can_start or silent.preemption is None or not silent.preemption.is_by_group:
        return found
    return _with_preemption(found, preempt_for_group(silent, group, members, TieBreak(0), 0))


class NewNodesForGroup(Struct, frozen=True):
    """The number of copies of the node `like` with which the PodGroup `group` can start.

    `count` is 0 if no such number was found, for example because some members need other nodes.
    """

    group: str
    like: str
    count: int


def new_nodes_for_group(model: ClusterModel, pod: PodInfo, like: str) -> NewNodesForGroup:
    """Return how many copies of the node `like` let the PodGroup of `pod` start.

    Nothing is preempted for the group. At most one copy for each waiting pod of the group is tried.
    """
    return NewNodesForGroup(group_key(pod), like, _copies_for_group(model, pod, model.node(like)))


def _copies_for_group(model: ClusterModel, pod: PodInfo, node: NodeInfo) -> int:
    with model.hypothesis():
        if model.cluster.pods.get(pod.key) is None:
            model.put(pod.pod)
        # Preemption for the whole group takes long, and would not change the result.
        profile = replace(model.profile_of(pod), preemption=None)
        before = try_pod_group(profile, pod)
        group = model.cluster.pod_groups.group_of(pod)
        if before is None or group is None:
            return 0
        scheduled = model.cluster.pod_groups.scheduled_count(group.key)
        lacking = max(1, gang_minimum(group) - scheduled - before.fitting)
        added, wanted = 0, 1
        while wanted <= before.waiting:
            for _ in range(added, wanted):
                copy_node(model, node, f"{node.name}-copy").add_to(model)
            added = wanted
            found = try_pod_group(profile, pod)
            gain = 0 if found is None else found.fitting - before.fitting
            if found is None or found.can_start or gain <= 0:
                return added if found is not None and found.can_start else 0
            wanted = max(added + 1, -(-lacking * added // gain))
    return 0


def _with_preemption(
    trial: PodGroupTrial, preempted: tuple[PodInfo, ...] | Status
) -> PodGroupTrial:
    """Return `trial` with the result of preemption for the whole group.

    `preempted` are the pods that the group would preempt. If preemption does not help,
    `preempted` is a Status with the reason.
    """
    if isinstance(preempted, Status):
        why = preempted.message.removesuffix(".")
        return replace(trial, note=f"{trial.note} Preemption does not help: {why}.")
    names = listed([victim.key for victim in preempted])
    would = f"The group would preempt {counted(len(preempted), 'pod')}: {names}."
    return replace(trial, victims=preempted, note=f"{trial.note} {would}")
