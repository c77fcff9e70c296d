"""The scheduling cycle of a PodGroup (`decide_group`), and the group's condition.

    1 place     try to place all waiting pods of the group (`placement`)
    2 preempt   if the pods do not fit, find victims whose removal makes room (`preemption`)
    3 report    set the condition PodGroupScheduled (`group_condition`)

upstream: pkg/scheduler/schedule_one_podgroup.go: podGroupCycle
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from fairlead.api.objects import PodGroup, PodGroupCondition
from fairlead.api.text.field_problem import quoted
from fairlead.engine.core.command import (
    Command,
    Condition,
    ObjectRef,
    ObservedCondition,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.failure import SCHEDULER_ERROR, UNSCHEDULABLE
from fairlead.engine.scheduling.pod_group.placement import (
    PodGroupMember,
    PodGroupResult,
    schedule_pod_group,
)
from fairlead.engine.scheduling.pod_group.preemption import preempt_for_group
from fairlead.engine.state.pod_groups import GROUP
from fairlead.engine.state.pod_info import PodInfo

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
SCHEDULED: Final = "Scheduled"


def decide_group(
    built: BuiltProfile, members: Sequence[PodGroupMember], tie_break: TieBreak, started: Instant
) -> Consultation[PodGroupResult]:
    """Decide on nodes for all `members` of one PodGroup, in the cycle that began at `started`.

    If the members do not fit and the group preempts as a whole, the result contains the victims.
    """
    result = yield from schedule_pod_group(built, members, tie_break, started)
    group = built.framework.cluster.pod_groups.group_of(members[0].pod)
    preemption = built.preemption
    by_group = preemption is not None and preemption.is_by_group
    if not by_group or group is None or not result.status.is_rejected:
        return result
    found = preempt_for_group(built, group, members, tie_break, started)
    if isinstance(found, Status) and not found.is_rejected:
        result.status = found
        return result
    if isinstance(found, Status):
        reasons = (*result.status.reasons, *found.reasons)
        result.status = replace(result.status, reasons=reasons)
        return result
    result.victims, result.awaits_preemption = found, True
    return result


def mixed_schedulers(pods: Sequence[PodInfo]) -> str:
    """Return an error message if `pods` have different schedulerNames, else "".

    upstream: frameworkForPodGroup
    """
    names = [pod.pod.spec.scheduler_name for pod in pods]
    other = next((name for name in names if name != names[0]), None)
    if other is None:
        return ""
    return (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f"got: {quoted(other)} and {quoted(names[0])}"
    )


def group_ref(group: PodGroup) -> ObjectRef:
    """Return the identity of a PodGroup of scheduling.k8s.io."""
    meta = group.metadata
    return ObjectRef(f"PodGroup.{GROUP}", meta.namespace, meta.name, meta.uid)


def group_condition(group: PodGroup, result: PodGroupResult) -> list[Command]:
    """Return the patch that sets the condition PodGroupScheduled; [] if nothing changes.

    Once the condition is True, a failed cycle does not change it.
    upstream: updatePodGroupCondition
    """
    before = next((c for c in group.status.conditions if c.type == POD_GROUP_SCHEDULED), None)
    if before is not None and before.status == "True" and not result.status.is_success:
        return []
    wanted = _condition(result.status)
    if before is not None and _texts(before) == _texts(wanted):
        return []
    generation = group.metadata.generation
    observed = ObservedCondition(**msgspec.structs.asdict(wanted), observed_generation=generation)
    return [PatchStatus(group_ref(group), conditions=(observed,))]


def _condition(status: Status) -> Condition:
    if status.is_success:
        return Condition(POD_GROUP_SCHEDULED, "True", SCHEDULED)
    reason = UNSCHEDULABLE if status.is_rejected else SCHEDULER_ERROR
    return Condition(POD_GROUP_SCHEDULED, "False", reason, status.message)


def _texts(condition: Condition | PodGroupCondition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message
