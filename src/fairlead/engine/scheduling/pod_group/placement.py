"""schedule_pod_group: tries to place all waiting pods of a PodGroup, one after the other.

    1 try     for each waiting pod of the group, by priority and arrival: schedule it, assume it on
              its node, and run Reserve and Permit, so that the next pod's cycle counts it
    2 judge   the group can start if Permit has allowed at least one of its pods
    3 revert  undo step 1 for all pods. Later, if the group can start, the scheduler
              binds the pods that found a node; otherwise, it requeues all pods

Example: a gang with minCount 3 on two nodes with room for one pod each. Pods 1 and 2 are placed,
and Permit holds both. Pod 3 fits nowhere. Permit has not allowed any pod, so no pod is bound.
upstream: pkg/scheduler/schedule_one_podgroup.go: podGroupSchedulingDefaultAlgorithm
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Struct, field

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import SUCCESS, Status, error, unschedulable
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import GROUP_UNSCHEDULABLE
from fairlead.engine.scheduling.binding_cycle import (
    PodBinding,
    run_permit,
    run_reserve,
    run_unreserve,
)
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Decision, Failure, Placement, refusal
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod
from fairlead.engine.state.pod_info import PodInfo

WAITING_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"
UNSCHEDULABLE_GROUP: Final = unschedulable(GROUP_UNSCHEDULABLE)


class PodGroupMember(Struct, frozen=True):
    """A waiting pod of the group: its queue entry, and the version of the pod that is tried."""

    queued: QueuedPod
    pod: PodInfo


class PodGroupAttempt(Struct, frozen=True):
    """The decision on one pod of the group.

    `node` is the node on which the pod was assumed, "" if no node fits. `is_held` is True if Permit
    holds the pod.
    """

    decision: Decision
    node: str = ""
    is_held: bool = False


class PodGroupResult(Struct):
    """The result of a PodGroup's cycle.

    `attempts` are in the order of the members; after an error, later members have no attempt. If
    `awaits_preemption` is set, the group fits once the preempted pods are gone. `victims` are the
    pods that preemption removes for the group as a whole, the least important pod last.
    """

    attempts: list[PodGroupAttempt] = field(default_factory=list)
    status: Status = UNSCHEDULABLE_GROUP
    awaits_preemption: bool = False
    victims: tuple[PodInfo, ...] = ()

    def decisions(self, members: Sequence[PodGroupMember]) -> Iterator[Decision]:
        """Yield the decision on each of `members`: its Placement, or its Failure.

        upstream: submitPodGroupAlgorithmResult
        """
        for number, member in enumerate(members):
            tried = self.attempts[number] if number < len(self.attempts) else None
            yield self._decision(member.pod, tried)

    def _decision(self, pod: PodInfo, tried: PodGroupAttempt | None) -> Decision:
        if not self.status.is_success and not self.status.is_rejected:
            if tried is not None and _is_error(tried.decision):
                return tried.decision
            return Failure(self.status.message, is_error=True)
        assert tried is not None
        decision = tried.decision
        if not tried.node or (self.status.is_success and isinstance(decision, Placement)):
            return decision
        if self.awaits_preemption:
            if isinstance(decision, Failure):
                return decision
            return Failure(self.status.message, nominated_node=tried.node)
        # If the pod needed preemption, `failure` keeps the victims, so that they are removed, as in
        # upstream.
        reasons = (GROUP_UNSCHEDULABLE, _held(pod) if tried.is_held else "")
        failure = decision if isinstance(decision, Failure) else Failure("")
        message = ", ".join(filter(None, reasons))
        return replace(failure, message=message, plugins=(), nominated_node="")


def _is_error(decision: Decision) -> bool:
    return isinstance(decision, Failure) and decision.is_error


def _held(pod: PodInfo) -> str:
    """Return upstream's message for a pod that Permit holds (runtime/framework.go)."""
    name = pod.pod.metadata.name
    return f'one or more plugins asked to wait and no plugin rejected pod "{name}"'


def schedule_pod_group(
    built: BuiltProfile,
    members: Sequence[PodGroupMember],
    tie_break: TieBreak,
    started: Instant,
    *,
    runs_post_filter: bool = True,
) -> Consultation[PodGroupResult]:
    """Decide on nodes for the pods of one group; all assumptions are reverted at the end.

    `started` is the start of the group's cycle. If `runs_post_filter` is False, no PostFilter
    plugin runs.
    """
    result = PodGroupResult()
    assumed: list[_Assumption] = []
    needs_preemption = False
    try:
        for member in members:
            decision = yield from schedule_one(
                built, member.pod, tie_break, runs_post_filter=runs_post_filter
            )
            attempt, assumption = _assume(built, member, decision, started)
            result.attempts.append(attempt)
            if assumption is None:
                failure = attempt.decision
                if isinstance(failure, Failure) and failure.is_error:
                    why = f"failed to schedule other pod from a pod group: {failure.message}"
                    result.status, result.awaits_preemption = error(why), False
                    break
                continue  # the group can still start without this pod
            assumed.append(assumption)
            needs_preemption = needs_preemption or isinstance(decision, Failure)
            if not attempt.is_held:
                result.awaits_preemption = needs_preemption
                result.status = SUCCESS
                if needs_preemption:
                    result.status = unschedulable(GROUP_UNSCHEDULABLE, WAITING_FOR_PREEMPTION)
    finally:
        for assumption in reversed(assumed):
            assumption.revert()
    return result


class _Assumption(Struct, frozen=True):
    """A pod that is assumed on a node while the other pods of its group are tried.

    `nominated` is the node to which the pod was nominated, or "". `make` withdraws this nomination,
    and `undo` restores it.
    """

    built: BuiltProfile
    binding: PodBinding
    nominated: str

    def make(self) -> None:
        self.built.framework.nominator.withdraw(self.binding.pod.uid)
        self.built.framework.cluster.assume(self.binding.pod, self.binding.node)

    def revert(self) -> None:
        run_unreserve(self.binding)
        self.undo()

    def undo(self) -> None:
        framework = self.built.framework
        framework.cluster.forget(self.binding.pod)
        if self.nominated:
            framework.nominator.nominate(self.binding.pod, self.nominated)


def _assume(
    built: BuiltProfile, member: PodGroupMember, decision: Decision, started: Instant
) -> tuple[PodGroupAttempt, _Assumption | None]:
    """Assume the pod on the node of `decision`, and run Reserve and Permit.

    If the pod fits no node yet, the node is the one on which preemption will make room. The
    assumption is None if `decision` has no node, or if Reserve or Permit refused the pod.
    """
    place = _place(decision)
    if place is None:
        return PodGroupAttempt(decision), None
    node, state = place
    pod, framework = member.pod, built.framework
    binding = PodBinding(
        member.queued, pod, node, state, framework, started, member.queued.attempts
    )
    assumption = _Assumption(built, binding, framework.nominator.node_of(pod.uid))
    assumption.make()
    refused = run_reserve(binding)
    held = run_permit(binding) if refused is None else refused
    if isinstance(held, Status):
        assumption.revert()
        return PodGroupAttempt(refusal(held)), None
    return PodGroupAttempt(decision, node, bool(held)), assumption


def _place(decision: Decision) -> tuple[str, CycleState] | None:
    """Return (node on which to assume the pod, CycleState); None if there is no such node."""
    if isinstance(decision, Placement):
        return decision.node.name, decision.state
    if decision.post_filter_result is None or not decision.nominated_node or decision.state is None:
        return None
    return decision.nominated_node, decision.state
