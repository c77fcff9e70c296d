"""Carrying out a preemption: victims are told to go, the least important one last.

    CLEARING ──▶ REMOVING all but the last ──▶ REMOVING the last ──▶ done
       nominations of lower-priority pods       (its disappearance is what lets the preemptor
       on the node are taken back                through PreEnqueue again)

Each victim gets the condition DisruptionTarget, is deleted with its own grace period, and has an
event Preempted recorded. Every step waits for the world's answers to the one before. A victim that
is already gone counts as done; another failure ends the preemption and the preemptor is tried again
at once.
upstream: framework/preemption/executor.go: prepareCandidateAsync, PreemptPod
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.core.command import (
    Command,
    Condition,
    DeleteObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.scheduling.preemption.eligibility import (
    DISRUPTION_TARGET,
    PREEMPTED_BY_SCHEDULER,
    is_preempted,
)
from fairlead.state.pod_info import PodInfo


@dataclass(slots=True)
class PreemptionExecution:
    """One preemptor's preemption in progress; feed `answer` until `is_done`."""

    preemptor: PodInfo
    node: str
    lower_nominated: tuple[PodInfo, ...]
    victims: tuple[PodInfo, ...]
    failed: bool = False
    _outstanding: dict[str, None] = field(default_factory=dict)
    _phase: int = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing more will be sent."""
        return self._phase > len(self._phases()) or self.failed

    @property
    def last_victim(self) -> PodInfo:
        """The least important victim."""
        return self.victims[-1]

    def start(self) -> list[Command]:
        """The first commands."""
        return self._advance()

    def answer(self, outcome: CommandSucceeded | CommandFailed) -> list[Command]:
        """What follows from the world's answer to one of our commands; [] if it was not ours."""
        command = outcome.command
        if not isinstance(command, PatchStatus | DeleteObject):
            return []
        uid = command.target.uid
        if uid not in self._outstanding:
            return []
        if isinstance(outcome, CommandFailed) and outcome.reason is not FailureReason.NOT_FOUND:
            self.failed = self._phase > 1
        if isinstance(outcome, CommandSucceeded) and self._phase > 1:
            victim = next(v for v in self.victims if v.uid == uid)
            if isinstance(command, PatchStatus):
                return [self._delete(victim)]
            del self._outstanding[uid]
            return [self._event(victim), *self._advance()]
        del self._outstanding[uid]
        return [] if self.failed else self._advance()

    def _phases(self) -> tuple[tuple[PodInfo, ...], ...]:
        return (self.lower_nominated, self.victims[:-1], self.victims[-1:])

    def _advance(self) -> list[Command]:
        """The commands of the next phase that has any, once nothing is outstanding."""
        commands: list[Command] = []
        while not self._outstanding and not self.is_done and not commands:
            pods = self._phases()[self._phase] if self._phase < len(self._phases()) else ()
            clearing = self._phase == 0
            self._phase += 1
            for pod in pods:
                self._outstanding[pod.uid] = None
                commands.append(_clear(pod) if clearing else self._remove(pod))
        return commands

    def _remove(self, victim: PodInfo) -> Command:
        if is_preempted(victim):
            return self._delete(victim)
        scheduler = self.preemptor.pod.spec.scheduler_name
        message = f"{scheduler}: preempting to accommodate a higher priority pod"
        condition = Condition(DISRUPTION_TARGET, "True", PREEMPTED_BY_SCHEDULER, message)
        return PatchStatus(victim.ref, conditions=(condition,))

    def _delete(self, victim: PodInfo) -> DeleteObject:
        return DeleteObject(victim.ref, why="preempted")

    def _event(self, victim: PodInfo) -> RecordEvent:
        return RecordEvent(
            regarding=victim.ref,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {self.preemptor.uid} on node {self.node}",
            reporting_controller=self.preemptor.pod.spec.scheduler_name,
            related=self.preemptor.ref,
        )


def _clear(pod: PodInfo) -> PatchStatus:
    return PatchStatus(pod.ref, fields={"nominatedNodeName": None})
