"""Carries out a preemption: evicts the victims, the least important victim last.

    CLEARING one by one ──▶ REMOVING all but the last together ──▶ REMOVING the last ──▶ done
       nominations of lower-priority pods          (once the last victim is terminating, the
       on the node are cleared                       preemptor passes PreEnqueue again)

Each victim gets the condition DisruptionTarget, is deleted with its own grace period, and gets the
event Preempted. A victim that waits on Permit or PreBind is not bound yet. Such a victim is not
deleted: its binding is canceled, and the victim goes back to the queue. Each phase waits for the
outcomes of the previous phase. If a victim no longer exists, it counts as removed. If a victim
exists but cannot be removed, the preemption ends after the current phase. If any command failed,
the preemptor is retried when the preemption ends.

upstream: framework/preemption/executor.go: prepareCandidateAsync, PreemptPod
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    observed,
)
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.scheduling.preemption.policy import (
    DISRUPTION_TARGET,
    PREEMPTED_BY_SCHEDULER,
    is_preempted,
)
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.state.pod_info import PodInfo

PREEMPTION: Final = "preemption"
_IN_MEMORY: Final = " (in kube-scheduler memory)."


@dataclass(slots=True)
class PreemptionExecution:
    """A preemption in progress; call `handle_outcome` until `is_done`.

    If a PodGroup preempts, `group` is that PodGroup and `preemptor` is one of its pods.
    """

    is_synchronous: ClassVar[bool] = False

    preemptor: PodInfo
    node: str
    lower_nominated: tuple[PodInfo, ...]
    victims: tuple[PodInfo, ...]
    unbound: UnboundVictims  # cancels the bindings of victims that are not bound yet
    group: ObjectRef | None = None
    failed: bool = False  # whether a victim could not be removed
    # Whether the preemptor must be retried when the preemption ends. This is so if a command
    # failed, with an error other than NotFound. It is also so if the last victim was deleted before
    # it was bound, because the deletion of an unbound pod might not wake the preemptor.
    must_retry: bool = False
    _outstanding: dict[int, PatchStatus | DeleteObject] = field(default_factory=dict)  # by id()
    _phase: int = 0
    _phases: tuple[tuple[PodInfo, ...], ...] = field(init=False)
    _victim_of: dict[str, PodInfo] = field(init=False)  # keyed by uid
    _condition: Condition = field(init=False)  # each victim gets this condition

    def __post_init__(self) -> None:
        """Divide `lower_nominated` and `victims` into phases."""
        one_by_one = tuple((pod,) for pod in self.lower_nominated)
        self._phases = (*one_by_one, self.victims[:-1], self.victims[-1:])
        self._victim_of = {victim.uid: victim for victim in self.victims}
        scheduler = self.preemptor.pod.spec.scheduler_name
        message = f"{scheduler}: preempting to accommodate a higher priority {self._type}"
        self._condition = Condition(DISRUPTION_TARGET, "True", PREEMPTED_BY_SCHEDULER, message)

    @property
    def is_done(self) -> bool:
        """Whether all outcomes have been received and no command remains to be sent."""
        if self._outstanding:
            return False
        return self.failed or self._phase > len(self._phases)

    def must_wait(self, pods: Mapping[str, PodInfo]) -> bool:
        """Return whether the preemptor must wait until the deletion of all victims has begun.

        The victim that is deleted last must be terminating or gone.

        `pods` are all pods in the cluster, keyed by `namespace/name`.

        upstream: executor.go: IsPodRunningPreemption
        """
        if self._phase < len(self._phases):
            return True
        last = pods.get(self.victims[-1].key)
        return last is not None and last.id == self.victims[-1].id and not last.terminating

    def start(self) -> list[Command]:
        """Return the first commands of the preemption."""
        return self._advance()

    def handle_outcome(self, outcome: CommandSucceeded | CommandFailed) -> list[Command] | None:
        """Return the next commands after `outcome`; None if another preemption sent the command.

        Two preemptions may send equal commands for one pod. Therefore `outcome.command` must be the
        very object that this preemption sent.
        """
        command = self._outstanding.pop(id(outcome.command), None)
        if command is None:
            return None
        removing = self._phase > len(self.lower_nominated)
        if type(outcome) is CommandSucceeded and removing:
            return self._next_commands(command)
        if type(outcome) is CommandFailed and outcome.reason is not FailureReason.NOT_FOUND:
            self.must_retry = True
            self.failed = self.failed or removing
        return self._advance()

    def _next_commands(self, command: PatchStatus | DeleteObject) -> list[Command]:
        """Return the next commands after `command` succeeded for a victim.

        If `command` patched the victim's status, the result deletes the victim. If `command`
        deleted the victim, the result contains the victim's event. If `command` was also the last
        command of the phase, the result contains the commands of the next phase, too.
        """
        victim = self._victim_of[command.target.uid]
        if type(command) is PatchStatus:
            deletion = self._delete(victim)
            self._outstanding[id(deletion)] = deletion
            return [deletion]
        if victim is self.victims[-1] and not victim.pod.spec.node_name:
            # If the victim's binding fails, its deletion is not an event that wakes the preemptor.
            # In upstream, the preemptor then waits for another event.
            self.must_retry = True
        event = self._event(victim)
        return [event] if self._outstanding else [event, *self._advance()]

    def _advance(self) -> list[Command]:
        """Return the commands of the next phases, up to the first phase that waits for outcomes."""
        commands: list[Command] = []
        while not self._outstanding and not self.is_done:
            pods = self._phases[self._phase] if self._phase < len(self._phases) else ()
            clearing = self._phase < len(self.lower_nominated)
            self._phase += 1
            for pod in pods:
                if not clearing and self.unbound.preempt(pod):
                    commands.append(self._event(pod, _IN_MEMORY))
                    continue
                command = clear_nomination(pod) if clearing else self._remove(pod)
                self._outstanding[id(command)] = command
                commands.append(command)
        return commands

    def _remove(self, victim: PodInfo) -> PatchStatus | DeleteObject:
        if is_preempted(victim):
            return self._delete(victim)
        condition = observed(self._condition, victim.pod.metadata.generation)
        return PatchStatus(victim.ref, conditions=(condition,), why=PREEMPTION)

    def _delete(self, victim: PodInfo) -> DeleteObject:
        return DeleteObject(victim.ref, why=PREEMPTION)

    @property
    def _type(self) -> str:
        return "pod" if self.group is None else "podgroup"

    def _event(self, victim: PodInfo, remark: str = "") -> RecordEvent:
        by = self.preemptor.ref if self.group is None else self.group
        return RecordEvent(
            regarding=victim.ref,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by {self._type} {by.uid} on node {self.node}{remark}",
            reporting_controller=self.preemptor.pod.spec.scheduler_name,
            related=by,
        )


def new_execution(
    preemptor: PodInfo,
    node: str,
    lower_nominated: tuple[PodInfo, ...],
    victims: tuple[PodInfo, ...],
    unbound: UnboundVictims,
    group: ObjectRef | None = None,
) -> PreemptionExecution | None:
    """Return the execution that evicts `victims`; None if all of them are already being deleted.

    If the result is None, the nominations of lower-priority pods are kept, as in upstream.
    """
    leaving = tuple([victim for victim in victims if not victim.terminating])
    if not leaving:
        return None
    return PreemptionExecution(preemptor, node, lower_nominated, leaving, unbound, group)


def clear_nomination(pod: PodInfo) -> PatchStatus:
    """Return the command that removes status.nominatedNodeName of `pod`."""
    return PatchStatus(pod.ref, fields={"nominatedNodeName": None}, why=PREEMPTION)
