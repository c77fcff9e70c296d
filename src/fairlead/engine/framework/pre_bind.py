"""PreparingPods: placed pods whose PreBind commands are still in progress.

    commands sent ──all succeeded──▶ plugin asked at intervals ──prepared──▶ the pod may be bound
          │ one failed, or preempted     │ rejected, timed out, or preempted
          └──────────────────────────────┴──▶ the placement fails

All plugins of a pod prepare concurrently. The pod is bound when the last plugin is done. Two pods
may send equal commands, so outcomes are matched by the identity of the command.
upstream: framework/runtime/framework.go: RunPreBindPlugins
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Code, Status, error
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Preparation, PreparationCommand, Preparer
from fairlead.engine.framework.runtime import attempt
from fairlead.engine.state.pod_info import PodInfo


class PodPreparation(Struct, frozen=True):
    """A placed pod with the preparation that `plugin` requires."""

    pod: PodInfo
    node: str
    state: CycleState
    plugin: Preparer
    preparation: Preparation


class _PendingPreparation(Struct, eq=False):
    """The preparation of a pod by one plugin, while it is in progress.

    `outstanding` is the number of commands that must still succeed. `since` is the time at which
    this number became 0. At this time, the last command succeeded. If the preparation has no
    commands, `since` is the time at which it started.
    """

    preparing: PodPreparation
    outstanding: int
    since: Instant = 0


class PreparationResult(Struct, frozen=True):
    """The result of a pod's preparation; `refusal` is None if the pod may be bound."""

    pod: PodInfo
    refusal: Status | None


class PreparingPods:
    """The pods being prepared; `works` maps `PodInfo.id` to the preparations in progress."""

    def __init__(self) -> None:
        self.works: dict[str, list[_PendingPreparation]] = {}
        self._in_flight: dict[
            int, tuple[PreparationCommand, _PendingPreparation]
        ] = {}  # by identity
        self._checks: TimerQueue[_PendingPreparation] = TimerQueue()

    def __contains__(self, pod: PodInfo) -> bool:
        return pod.id in self.works

    def begin(self, works: list[PodPreparation], now: Instant) -> list[PreparationCommand]:
        """Start `works`, the preparations of one pod; return the commands to send, in order."""
        commands: list[PreparationCommand] = []
        for preparing in works:
            sent = preparing.preparation.commands
            wanted = [command for command in sent if not isinstance(command, RecordEvent)]
            work = _PendingPreparation(preparing, len(wanted))
            self.works.setdefault(preparing.pod.id, []).append(work)
            self._in_flight |= {id(command): (command, work) for command in wanted}
            commands += sent
            if not wanted:
                self._wait(work, now)
        return commands

    def cancel(self, pod: PodInfo) -> Status | None:
        """Drop all preparations of `pod`; return the status with which its placement fails.

        Returns None if the pod is not being prepared.
        """
        works = self.works.get(pod.id)
        if not works:
            return None
        preparing = works[0].preparing
        self.forget(pod)
        return pre_bind_refusal(preparing.plugin.name, error(preparing.preparation.on_cancel))

    def forget(self, pod: PodInfo) -> None:
        """Drop all preparations of `pod`."""
        for work in self.works.pop(pod.id, ()):
            for command in work.preparing.preparation.commands:
                self._in_flight.pop(id(command), None)

    # --- progress --------------------------------------------------------------------------

    def handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> PreparationResult | None:
        """Handle the outcome of a command; a failed command ends the preparation of its pod.

        If the command failed, the result contains the refusal. Returns None if the command
        succeeded, or if it belongs to no preparation.
        """
        _, work = self._in_flight.pop(id(outcome.command), (None, None))
        if work is None:
            return None
        if isinstance(outcome, CommandFailed):
            return self._refuse(work, error(outcome.message))
        work.outstanding -= 1
        if not work.outstanding:
            self._wait(work, now)
        return None

    def next_check(self) -> Instant | None:
        """Return the next time at which to call `check`; None if no check is scheduled."""
        return self._checks.next_due()

    def check(self, now: Instant) -> Iterator[PreparationResult]:
        """Call `is_prepared` of every plugin whose next check is due at `now`.

        Yields the result for each pod that is now prepared, was rejected, or has timed out.
        """
        for work in self._checks.pop_due(now):
            if work in self.works.get(work.preparing.pod.id, ()):
                ended = self._check(work, now)
                if ended is not None:
                    yield ended

    def _check(self, work: _PendingPreparation, now: Instant) -> PreparationResult | None:
        preparing, preparation = work.preparing, work.preparing.preparation
        if now - work.since >= preparation.timeout:
            return self._refuse(work, error(preparation.on_timeout))
        plugin, pod = preparing.plugin, preparing.pod
        call = partial(plugin.is_prepared, preparing.state, pod, preparing.node)
        answer = attempt(plugin, call)
        if answer is not None and answer.code is Code.WAIT:
            self._checks.add(now + preparation.interval, work)
            return None
        if answer is not None and not answer.is_success:
            return self._refuse(work, answer)
        works = self.works[pod.id]
        works.remove(work)
        if works:
            return None
        self.forget(pod)
        return PreparationResult(pod, None)

    def _wait(self, work: _PendingPreparation, now: Instant) -> None:
        work.since = now
        self._checks.add(now + work.preparing.preparation.interval, work)

    def _refuse(self, work: _PendingPreparation, status: Status) -> PreparationResult:
        self.forget(work.preparing.pod)
        return PreparationResult(
            work.preparing.pod, pre_bind_refusal(work.preparing.plugin.name, status)
        )


def pre_bind_refusal(plugin: str, status: Status) -> Status:
    """Return the status for a pod that the PreBind plugin `plugin` rejected with `status`.

    If `status` is an error, the message of the result names the plugin.
    """
    if status.is_rejected:
        return status.by(plugin)
    return error(f'running PreBind plugin "{plugin}": {status.message}').by(plugin)
