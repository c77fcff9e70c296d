"""FaultyWorld: sits between the engine and its world, and injects faults in both directions.

    engine ──command──▶ fault? ──▶ LocalWorld ──changes, outcomes──▶ cut watch? ──▶ engine

The changes of a scenario are also performed here. These changes stand for the requests of other
clients, and write to the same store as the engine's commands.

A command that needs an admission webhook is performed when the webhook answers. If a fault is
injected into the command, the webhook answers without a delay.

As in every world, the outcome of a command is reported after its effects. So while the watch of a
kind is cut, the outcomes of commands on objects of this kind are held back together with the
changes. An outcome is held back for at most HOLD_MAX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.suspension import WebhookAnswer
from fairlead.engine.core.command import IssuedCommand, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import (
    CollectionDeleted,
    CommandFailed,
    CommandSucceeded,
    ExtenderAnswered,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    OwnersLookedUp,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.testing.torture.client_script import ClientScript, ProcessKilledError
from fairlead.testing.torture.fault.fault_plan import FaultPlan, target_of
from fairlead.testing.torture.fault.in_process_webhooks import InProcessWebhooks
from fairlead.testing.torture.scenario import Fault, FaultKind
from fairlead.worlds.local.admission_gateway import PendingCommand
from fairlead.worlds.local.world import LocalWorld

HOLD_MAX: Final[DurationNs] = seconds(5)  # same as HOLD_MAX in worlds/cluster/world.py
COMMANDS_PER_INSTANT_MAX: Final = 20_000
INJECTED: Final = "injected fault"
# Faults do not delete objects of these kinds; the changes of a scenario may.
_KEPT: Final = ("Node", "Namespace", "Lease", "ResourceQuota")


class EndlessInstantError(Exception):
    """Raised if there are more commands at one instant than a cluster of this size can need."""


class FaultyWorld:
    """A World that wraps `world` and injects faults."""

    def __init__(
        self,
        world: LocalWorld,
        plan: FaultPlan,
        script: ClientScript,
        tally: Counter[str],
        *,
        calm_at: Instant,
        webhooks: InProcessWebhooks | None = None,
    ) -> None:
        """Prepare to inject the faults of `plan` until `calm_at` and to perform `script`.

        `tally` counts commands and faults. `webhooks` answers the calls of admission webhooks.
        """
        world.gateway.calls_webhooks = webhooks is not None
        self._webhooks = webhooks
        self.store = world.store
        self.suspended_until: Instant = 0
        self._world = world
        self._plan = plan
        self._script = script
        self._tally = tally
        self._calm_at = calm_at
        self._ready: list[Stimulus] = []
        self._late: TimerQueue[Callable[[Instant], None]] = TimerQueue()
        self._cut: dict[str, bool] = {}
        self._held: list[tuple[Instant, Stimulus]] = []
        self._known: set[str] = set()
        self._instant: Instant = 0
        self._at_instant = 0

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Perform a command, or inject the fault that is planned for the command.

        Returns the outcome of the command, or None if `poll` returns the outcome later. Raises
        ProcessKilledError if the fault kills the process.
        """
        self._count(issued, now)
        fault = self._plan.next_fault(issued.command) if now < self._calm_at else None
        if fault is None:
            outcome = self._world.perform(issued, now)
            self._call_webhooks(now)
            return outcome
        self._tally[f"fault {fault.kind}"] += 1
        return self._inject(fault, issued, now)

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the stimuli that the engine receives at `now`.

        If no stimulus is ready, this method performs what is due. First come the delayed actions,
        such as commands with a fault, then the changes of the client script. While the control
        plane is suspended (`suspended_until`), nothing is performed.
        """
        while True:
            self._collect(now)
            if self._ready:
                stimuli, self._ready = self._ready, []
                for one in stimuli:
                    self._learn(one)
                return stimuli
            if now < self.suspended_until:
                return []
            due = self._late.pop_due(now)
            for act in due:
                act(now)
            if not due and not self._script.perform_next(self, now):
                return []

    def next_event(self) -> Instant | None:
        """Return the time of the next change, late command or held outcome; None if none is left.

        While the process is suspended, the result is not before the end of the suspension.
        """
        dues = (self._late.next_due(), self._script.next_due())
        due = min((one for one in dues if one is not None), default=None)
        return None if due is None else max(due, self.suspended_until)

    # --- faults of commands ------------------------------------------------------------------

    def _inject(self, fault: Fault, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        command = issued.command
        match fault.kind:
            case FaultKind.REFUSED:
                return CommandFailed(command, FailureReason(fault.reason), INJECTED)
            case FaultKind.LATE:
                self._later(fault, now, lambda then: self._execute(issued, then))
            case FaultKind.UNACKNOWLEDGED:
                failure = CommandFailed(command, FailureReason.INTERNAL_ERROR, INJECTED)
                self._report(failure if is_outcome(one) else one for one in self._do(issued, now))
            case FaultKind.SLOW_ANSWER:
                self._answer_later(fault, issued, now)
            case FaultKind.TWICE:
                self._report(one for one in self._do(issued, now) if not is_outcome(one))
                self._execute(issued, now)
            case FaultKind.TARGET_DELETED | FaultKind.TARGET_CHANGED:
                self._change_target(fault, issued, now)
                self._execute(issued, now)
            case FaultKind.KILLED_BEFORE:
                raise ProcessKilledError(now)
            case FaultKind.KILLED_AFTER:
                self._world.perform(issued, now)
                raise ProcessKilledError(now)
        return None

    def _do(self, issued: IssuedCommand, now: Instant) -> list[Stimulus]:
        """Perform a command; return the resulting changes, then the outcome of the command.

        Older stimuli of the world are not returned here, but by the next `poll`.
        """
        self._ready += self._world.poll(now)
        outcome = self._world.perform(issued, now)
        while self._webhooks is not None and self._world.gateway.pending:
            waiting = self._world.gateway.pending.popleft()
            self._world.resume(waiting, self._webhooks.call(waiting.call).answer, now)
        return [*self._world.poll(now), *([] if outcome is None else [outcome])]

    def _execute(self, issued: IssuedCommand, now: Instant) -> None:
        self._report(self._do(issued, now))

    def _report(self, stimuli: Iterable[Stimulus]) -> None:
        self._ready += stimuli

    def _later(self, fault: Fault, now: Instant, act: Callable[[Instant], None]) -> None:
        self._late.add(now + fault.delay_ms * NANOSECONDS_PER_MILLISECOND, act)

    def _answer_later(self, fault: Fault, issued: IssuedCommand, now: Instant) -> None:
        for one in self._do(issued, now):
            if is_outcome(one):
                self._later(fault, now, lambda _, one=one: self._ready.append(one))  # type: ignore[misc]
            else:
                self._ready.append(one)

    def _change_target(self, fault: Fault, issued: IssuedCommand, now: Instant) -> None:
        """Change the target of a command, as if another client were faster.

        If the fault is TARGET_DELETED and the target's kind is not in `_KEPT`, delete the target.
        """
        ref, store = target_of(issued.command), self.store
        kind = find_kind(ref.kind)
        if kind is None or not ref.name:
            return
        try:
            if fault.kind is FaultKind.TARGET_DELETED and kind.kind not in _KEPT:
                store.delete(kind, ref.namespace, ref.name, now)
            else:
                mark = {"metadata": {"annotations": {"torture": str(now)}}}
                store.patch(kind, ref.namespace, ref.name, mark, now)
        except ApiError:
            return

    # --- webhooks ----------------------------------------------------------------------------

    def _call_webhooks(self, now: Instant) -> None:
        """Call the webhooks that pending commands wait for.

        A command continues when the delay of its webhook's answer is over.
        """
        pending = self._world.gateway.pending
        while self._webhooks is not None and pending:
            waiting = pending.popleft()
            found = self._webhooks.call(waiting.call)
            self._late.add(now + found.delay, partial(self._resume, waiting, found.answer))

    def _resume(self, waiting: PendingCommand, answer: WebhookAnswer, now: Instant) -> None:
        self._world.resume(waiting, answer, now)
        self._call_webhooks(now)

    # --- faults of watches -------------------------------------------------------------------

    def cut(
        self, kinds: Iterable[str], now: Instant, duration: DurationNs, *, compacted: bool
    ) -> None:
        """Hold back the stimuli about objects of `kinds` for `duration`, as if watches were cut.

        Afterwards, all of these stimuli are reported. If `compacted` is set, only the last change
        of each object is reported.
        """
        self._collect(now)
        for kind in kinds:
            self._cut[kind] = self._cut.get(kind, False) or compacted
            self._late.add(now + duration, partial(self._restore, kind))

    def _restore(self, kind: str, now: Instant) -> None:
        """Report the changes and outcomes that were held back while the watch of `kind` was cut."""
        del now
        if kind not in self._cut:
            return
        compacted = self._cut.pop(kind)
        held, self._held = self._held, []
        missed = [one for _, one in held if _kind_of(one) == kind]
        for due, one in held:
            if _kind_of(one) in self._cut:
                self._held.append((due, one))
        changes = [one for one in missed if not is_outcome(one)]
        self._ready += _relisted(changes, self._known) if compacted else changes
        self._ready += [one for one in missed if is_outcome(one)]

    def _give_up(self, now: Instant) -> None:
        """Report the outcomes that were held back for longer than HOLD_MAX."""
        for due, one in self._held:
            if due <= now and is_outcome(one):
                self._ready.append(one)
        self._held = [(due, one) for due, one in self._held if due > now or not is_outcome(one)]

    def _collect(self, now: Instant) -> None:
        """Take the stimuli from the world; hold back the stimuli of kinds whose watch is cut."""
        arrived = [*self._ready, *self._world.poll(now)]
        self._ready = []
        if not self._cut:
            self._ready = arrived
            return
        for one in arrived:
            if _kind_of(one) in self._cut:
                self._held.append((now + HOLD_MAX, one))
                if is_outcome(one):
                    self._late.add(now + HOLD_MAX, self._give_up)
            else:
                self._ready.append(one)

    def _learn(self, stimulus: Stimulus) -> None:
        """Record which objects the engine has received."""
        match stimulus:
            case ObjectChanged(view):
                self._known.add(view.metadata.uid)
            case ObjectDeleted(view):
                self._known.discard(view.metadata.uid)
            case ObjectsLoaded(views):
                self._known.update(view.metadata.uid for view in views)
            case _:
                pass

    # --- bookkeeping -------------------------------------------------------------------------

    def _count(self, issued: IssuedCommand, now: Instant) -> None:
        name = "events" if isinstance(issued.command, RecordEvent) else "commands"
        self._tally[name] += 1
        if now != self._instant:
            self._instant, self._at_instant = now, 0
        self._at_instant += 1
        if self._at_instant > COMMANDS_PER_INSTANT_MAX:
            raise EndlessInstantError(f"over {COMMANDS_PER_INSTANT_MAX:,} commands at one instant")


def is_outcome(stimulus: Stimulus) -> bool:
    """Return whether `stimulus` is the outcome of a command."""
    return isinstance(
        stimulus,
        CommandSucceeded | CommandFailed | CollectionDeleted | OwnersLookedUp | ExtenderAnswered,
    )


def _kind_of(stimulus: Stimulus) -> str:
    """Return the kind of the object that changed, or of the target of the command; else ""."""
    match stimulus:
        case ObjectChanged(view) | ObjectDeleted(view):
            return type(view).__name__
        case CommandSucceeded(command) | CommandFailed(command, _, _) | ExtenderAnswered(command):
            return target_of(command).kind.partition(".")[0]
        case _:
            return ""


def _relisted(changes: Iterable[Stimulus], known: Collection[str]) -> Iterator[Stimulus]:
    """Yield what a client that missed `changes` learns from a new list.

    Deletions come first, and only for objects that the client knew: `known` contains their uids.
    Then comes the last change of each object that still exists.
    """
    last: dict[str, ObjectChanged | ObjectDeleted] = {}
    for one in changes:
        assert isinstance(one, ObjectChanged | ObjectDeleted)
        last.pop(one.object.metadata.uid, None)
        last[one.object.metadata.uid] = one
    for uid, one in last.items():
        if isinstance(one, ObjectDeleted) and uid in known:
            yield one
    yield from (one for one in last.values() if isinstance(one, ObjectChanged))
