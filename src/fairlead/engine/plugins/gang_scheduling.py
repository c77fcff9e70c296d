"""GangScheduling: the pods of a gang start together or not at all.

A gang is a PodGroup whose schedulingPolicy is `gang`. The pods of a gang stay out of the queue
until the PodGroup and at least minCount of its pods exist. No pod of the gang is bound before nodes
have been chosen for at least minCount of its pods.

upstream: framework/plugins/gangscheduling/gangscheduling.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import PodGroup
from fairlead.api.text.field_problem import quoted
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import Status, error, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo

# The constant permitTimeoutDuration of upstream.
_PERMIT_TIMEOUT: Final = seconds(5 * 60)
_TOO_FEW: Final = unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)


class GangScheduling:
    """Holds the pods of a gang until minCount of them have a node (PreEnqueue, Permit)."""

    name = "GangScheduling"
    events = frozenset(
        {EventKind.UNSCHEDULED_POD_ADD, EventKind.ASSIGNED_POD_ADD, EventKind.POD_GROUP_ADD}
    )

    def __init__(self, handle: Handle) -> None:
        self._groups = handle.cluster.pod_groups
        self._waiting = handle.waiting_pods

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Reject a pod until its PodGroup exists.

        If the PodGroup is a gang, it must also have at least minCount pods.
        """
        named = pod.pod.spec.scheduling_group
        if named is None:
            return None
        group = self._groups.group_of(pod)
        if group is None:
            name = quoted(named.pod_group_name or "")
            return unresolvable(
                f"waiting for pods's pod group {name} to appear in scheduling queue"
            )
        return _TOO_FEW if self._groups.member_count(group.key) < gang_minimum(group) else None

    def permit(self, _state: CycleState, pod: PodInfo, _node: str) -> Status | Wait | None:
        """Hold the pods of a gang until minCount of them have a node, then allow all of them.

        Returns Wait if the pod must wait, and an ERROR status if the PodGroup does not exist.
        """
        if pod.pod.spec.scheduling_group is None:
            return None
        key = group_key(pod)
        group = self._groups.find(key)
        if group is None:
            message = f'podgroup.scheduling.k8s.io "{key.partition("/")[2]}" not found'
            return error(f"failed to get podGroup {key}: {message}")
        minimum = gang_minimum(group)
        if not minimum:
            return None
        if self._groups.scheduled_count(key) < minimum:
            return Wait(_PERMIT_TIMEOUT)
        for waiting in self._waiting.all():
            if group_key(waiting.pod) == key:
                self._waiting.allow(waiting.pod.id, self.name)
        return None

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` adds the PodGroup of `pod` or another pod of that PodGroup."""
        if isinstance(event.new, PodGroup):
            return event.new.key == group_key(pod)
        return isinstance(event.new, PodInfo) and group_key(event.new) == group_key(pod) != ""


def gang_minimum(group: PodGroup) -> int:
    """Return minCount if the policy of `group` is gang, else 0."""
    policy = group.spec.scheduling_policy
    return policy.gang.min_count if policy is not None and policy.gang is not None else 0
