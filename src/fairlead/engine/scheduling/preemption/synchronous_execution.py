"""Carries out a preemption within the scheduling cycle, as schedulers before 1.33 do.

    DELETING the victims one by one ──▶ CLEARING nominations of lower-priority pods ──▶ done

A victim is deleted with its own grace period, even if it is terminating already, and gets the event
Preempted. If a victim cannot be deleted, no further command is sent and the preemptor is not
nominated. Failures to clear nominations are ignored.
upstream: v1.19 framework/plugins/defaultpreemption/default_preemption.go: PrepareCandidate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

from fairlead.engine.core.command import Command, DeleteObject, RecordEvent
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.scheduling.preemption.execution import (
    PREEMPTION,
    clear_nomination,
)
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.state.pod_info import PodInfo


class SynchronousExecution(Struct):
    """A preemption in progress; call `handle_outcome` until `is_done`.

    If a deleted victim waits on Permit, `unbound.reject` ends the wait with a rejection. `failed`
    is set if a victim could not be deleted. `must_retry` is always False, because the scheduling
    cycle waits for the preemption. The preemptor is requeued when the cycle ends.
    """

    is_synchronous: ClassVar[bool] = True

    preemptor: PodInfo
    node: str
    lower_nominated: tuple[PodInfo, ...]
    victims: tuple[PodInfo, ...]
    unbound: UnboundVictims
    failed: bool = False
    _deleted: int = 0
    _outstanding: dict[int, Command] = field(default_factory=dict)  # by id()
    _is_clearing: bool = False

    @property
    def is_done(self) -> bool:
        """Whether all commands have been sent and their outcomes received."""
        return self.failed or (self._is_clearing and not self._outstanding)

    @property
    def must_retry(self) -> bool:
        """Whether the preemptor must be retried immediately; always False."""
        return False

    def must_wait(self, _pods: Mapping[str, PodInfo]) -> bool:
        """Return False: the preemptor is not queued before its cycle has ended."""
        return False

    def start(self) -> list[Command]:
        """Return the first commands of the preemption."""
        return self._advance()

    def handle_outcome(self, outcome: CommandSucceeded | CommandFailed) -> list[Command] | None:
        """Return the next commands after `outcome`; None if another preemption sent the command."""
        if self._outstanding.pop(id(outcome.command), None) is None:
            return None
        if self._is_clearing:
            return []
        if isinstance(outcome, CommandFailed):
            self.failed = True
            return []
        victim = self.victims[self._deleted]
        self._deleted += 1
        self.unbound.reject(victim)
        return [self._event(victim), *self._advance()]

    def _advance(self) -> list[Command]:
        """Delete the next victim; after the last victim, clear all nominations together."""
        if self._deleted < len(self.victims):
            victim = self.victims[self._deleted]
            commands: list[Command] = [DeleteObject(victim.ref, why=PREEMPTION)]
        else:
            self._is_clearing = True
            nominated = (p for p in self.lower_nominated if p.pod.status.nominated_node_name)
            commands = [clear_nomination(pod) for pod in nominated]
        self._outstanding = {id(command): command for command in commands}
        return commands

    def _event(self, victim: PodInfo) -> RecordEvent:
        return RecordEvent(
            regarding=victim.ref,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by {self.preemptor.key} on node {self.node}",
            reporting_controller=self.preemptor.pod.spec.scheduler_name,
            related=self.preemptor.ref,
        )
