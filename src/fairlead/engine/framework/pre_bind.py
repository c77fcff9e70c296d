"""PreparingPods: placed pods whose PreBind plugins wait for the world.

    commands sent ──all succeeded──▶ asked every interval ──prepared──▶ the pod may be bound
          │ one failed                   │ refused, or timed out
          └──────────────────────────────┴──▶ the placement comes to nothing

All plugins of a pod prepare side by side, and the pod is bound once the last one is done. Two pods
may ask the same of the same object, so answers are told apart by the command itself, not by what it
says.
upstream: framework/runtime/framework.go: RunPreBindPlugins
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Code, Status, error
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Preparation, PreparationCommand, Preparer
from fairlead.engine.framework.runtime import attempt
from fairlead.engine.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Preparing:
    """A pod that `plugin` prepares for `node`."""

    pod: PodInfo
    node: str
    state: CycleState
    plugin: Preparer
    preparation: Preparation


@dataclass(slots=True, eq=False)
class _Work:
    """One plugin's preparation; `since` is when its commands had all succeeded."""

    preparing: Preparing
    unanswered: int
    since: Instant = 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A pod's preparation is over: `refusal` is None if it may be bound."""

    pod: PodInfo
    refusal: Status | None


class PreparingPods:
    """`works` in progress are by `PodInfo.id`."""

    def __init__(self) -> None:
        """Nobody is being prepared."""
        self.works: dict[str, list[_Work]] = {}
        self._asked: dict[int, tuple[PreparationCommand, _Work]] = {}  # by identity
        self._checks: TimerQueue[_Work] = TimerQueue()

    def __contains__(self, pod: PodInfo) -> bool:
        """Whether `pod` is being prepared."""
        return pod.id in self.works

    def begin(self, works: list[Preparing], now: Instant) -> list[PreparationCommand]:
        """Prepare one pod; the commands to be sent, in order."""
        commands: list[PreparationCommand] = []
        for preparing in works:
            wanted = preparing.preparation.commands
            work = _Work(preparing, len(wanted))
            self.works.setdefault(preparing.pod.id, []).append(work)
            self._asked |= {id(command): (command, work) for command in wanted}
            commands += wanted
            if not wanted:
                self._wait(work, now)
        return commands

    def forget(self, pod: PodInfo) -> None:
        """The pod is not being prepared any more."""
        for work in self.works.pop(pod.id, ()):
            for command in work.preparing.preparation.commands:
                self._asked.pop(id(command), None)

    # --- going on --------------------------------------------------------------------------

    def answer(self, outcome: CommandSucceeded | CommandFailed, now: Instant) -> Prepared | None:
        """What the world's answer ends; None if it was to nobody here, or ends nothing."""
        _, work = self._asked.pop(id(outcome.command), (None, None))
        if work is None:
            return None
        if isinstance(outcome, CommandFailed):
            return self._refuse(work, error(outcome.message))
        work.unanswered -= 1
        if not work.unanswered:
            self._wait(work, now)
        return None

    def next_check(self) -> Instant | None:
        """When the first plugin is asked again; maybe one that has no answer to give any more."""
        return self._checks.next_due()

    def check(self, now: Instant) -> Iterator[Prepared]:
        """Ask every plugin whose time has come; what ends by that."""
        for work in self._checks.pop_due(now):
            if work in self.works.get(work.preparing.pod.id, ()):
                ended = self._check(work, now)
                if ended is not None:
                    yield ended

    def _check(self, work: _Work, now: Instant) -> Prepared | None:
        preparing, preparation = work.preparing, work.preparing.preparation
        if now - work.since >= preparation.timeout:
            return self._refuse(work, error(preparation.on_timeout))
        plugin, pod = preparing.plugin, preparing.pod
        ask = partial(plugin.is_prepared, preparing.state, pod, preparing.node)
        answer = attempt(plugin, ask)
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
        return Prepared(pod, None)

    def _wait(self, work: _Work, now: Instant) -> None:
        work.since = now
        self._checks.add(now + work.preparing.preparation.interval, work)

    def _refuse(self, work: _Work, status: Status) -> Prepared:
        self.forget(work.preparing.pod)
        return Prepared(work.preparing.pod, pre_bind_refusal(work.preparing.plugin.name, status))


def pre_bind_refusal(plugin: str, status: Status) -> Status:
    """A PreBind plugin's refusal as it is reported: an error says where it comes from."""
    if status.is_rejected:
        return status.by(plugin)
    return error(f'running PreBind plugin "{plugin}": {status.message}').by(plugin)
