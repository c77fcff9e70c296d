"""Disruption: keeps the status of PodDisruptionBudgets true.

A change of a pod touches the budgets that guard it, and only one that changes a count writes
anything. The eviction subresource takes from a budget itself and notes the pod in
status.disruptedPods; until that pod terminates it counts as not healthy, so an eviction under
way is never given back.

Differs from upstream: where none of the controllers behind a budget is known, what the loaded
status expected is kept (see also `scale`). A DisruptionTarget condition that came to nothing is
taken back as upstream does.

upstream: pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, Pod, PodDisruptionBudget
from fairlead.engine.core.command import Command, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.disruption.budget import BudgetError
from fairlead.engine.workloads.disruption.budget_state import Ledger, NamespaceGuard
from fairlead.engine.workloads.disruption.budget_status import (
    KIND,
    NO_PODS,
    UNMANAGED,
    as_read,
    doubtful,
    failure_patch,
    not_counted,
    standing_patch,
)
from fairlead.engine.workloads.disruption.scale import Scales, is_scalable
from fairlead.engine.workloads.disruption.stale_disruption import StaleDisruptions

# A recheck goes through a rate-limited queue whose first delay is this long.
RECHECK_LAG: Final = seconds(0.005)
RETRY_AFTER: Final = seconds(1)


class Disruption:
    """The controller of PodDisruptionBudgets."""

    issuer: ClassVar[Issuer] = controller_account("disruption-controller")

    def __init__(self, *, is_observed: bool = False) -> None:
        """Start knowing nothing; where it `is_observed`, events tell what seems to be wrong."""
        self._is_observed = is_observed
        self._guards: dict[str, NamespaceGuard] = {}
        self._scales = Scales()
        self._stale = StaleDisruptions()
        self._rechecks: TimerQueue[tuple[str, str]] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Write what `stimulus` changed about any budget."""
        match stimulus:
            case ObjectChanged(one):
                return self._sync_all(self._see(one), now)
            case ObjectDeleted(one):
                return self._sync_all(self._forget(one), now)
            case ObjectsLoaded(objects):
                return self._load(objects, now)
            case CommandSucceeded(PatchStatus(target)) if target.kind == KIND:
                return self._see_success(target, now)
            case CommandFailed(PatchStatus(target), reason, _) if target.kind == KIND:
                self._see_failure(target, reason, now)
        return []

    def next_deadline(self) -> Instant | None:
        """When an eviction under way, or a condition, is to be given up."""
        dues = (self._rechecks.next_due(), self._stale.next_due())
        return min((due for due in dues if due is not None), default=None)

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Give up what has been waited for too long."""
        commands = self._stale.give_up(now)
        for namespace, name in self._rechecks.pop_due(now):
            ledger = self._guard(namespace).ledgers.get(name)
            if ledger is not None:
                ledger.recheck_at = None
                commands += self._sync(ledger, now)
        return commands

    # --- learning: each gives back the budgets it concerns ---------------------------------------

    def _see(self, one: ApiObject) -> Iterable[Ledger]:
        guard = self._guard(one.metadata.namespace)
        match one:
            case Pod():
                self._stale.see(one)
                self._scales.see_pod(one)
                return guard.see_pod(one)
            case PodDisruptionBudget():
                return (guard.see_budget(one),)
            case _ if is_scalable(one):
                return guard.ledgers.values() if self._scales.see(one) else ()
            case _:
                return ()

    def _forget(self, one: ApiObject) -> Iterable[Ledger]:
        guard = self._guard(one.metadata.namespace)
        match one:
            case Pod():
                self._stale.forget(one)
                self._scales.forget_pod(one)
                return guard.forget_pod(one.metadata.name)
            case PodDisruptionBudget():
                guard.forget_budget(one.metadata.name)
                return ()
            case _ if is_scalable(one):
                self._scales.forget(one)
                return guard.ledgers.values()
            case _:
                return ()

    def _load(self, objects: Iterable[ApiObject], now: Instant) -> list[Command]:
        """Take in everything first; a loaded status counts as written by somebody who knew."""
        for one in objects:
            self._see(one)
        commands: list[Command] = []
        for guard in self._guards.values():
            for ledger in guard.ledgers.values():
                ledger.is_observed = True
                ledger.expected = ledger.budget.view.status.expected_pods
                commands += self._sync(ledger, now)
        return commands

    def _see_success(self, target: ObjectRef, now: Instant) -> list[Command]:
        ledger = self._guard(target.namespace).ledgers.get(target.name)
        if ledger is None:
            return []
        ledger.is_writing = False
        return self._sync(ledger, now) if ledger.is_dirty else []

    def _see_failure(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        ledger = self._guard(target.namespace).ledgers.get(target.name)
        if ledger is None or reason is FailureReason.NOT_FOUND:
            return
        ledger.is_writing = ledger.is_observed = False
        self._rechecks.add(now + RETRY_AFTER, (target.namespace, target.name))

    def _guard(self, namespace: str) -> NamespaceGuard:
        return self._guards.setdefault(namespace, NamespaceGuard())

    # --- deciding --------------------------------------------------------------------------------

    def _sync_all(self, ledgers: Iterable[Ledger], now: Instant) -> list[Command]:
        return [command for ledger in ledgers for command in self._sync(ledger, now)]

    def _sync(self, ledger: Ledger, now: Instant) -> list[Command]:
        view = ledger.budget.view
        self._plan_recheck(ledger, now)
        ledger.is_dirty = ledger.is_writing
        if ledger.is_writing:
            return []
        told: list[Command] = self._doubts(ledger)
        try:
            standing = ledger.budget.standing(self._scale(ledger), now)
        except BudgetError as cause:
            failed = _fail(ledger, str(cause))
            if failed and self._is_observed:
                told.append(not_counted(view, str(cause)))
            return [*told, *(self._spelled(one, view, now) for one in failed)]
        if ledger.is_observed and not ledger.failure and standing.is_written_in(view):
            return told
        ledger.is_writing, ledger.is_observed, ledger.failure = True, True, ""
        return [*told, self._spelled(standing_patch(view, standing), view, now)]

    def _spelled(self, patch: PatchStatus, view: PodDisruptionBudget, now: Instant) -> Command:
        return as_read(patch, view, now) if self._is_observed else patch

    def _doubts(self, ledger: Ledger) -> list[Command]:
        """What a user should know of the pods of a budget, once each time it comes about."""
        if not self._is_observed:
            return []
        budget = ledger.budget
        doubt = ""
        if not budget.members:
            doubt = NO_PODS
        elif budget.needs_scale and sum(budget.owners.values()) < len(budget.members):
            doubt = UNMANAGED
        before, ledger.doubt = ledger.doubt, doubt
        return [doubtful(budget.view, doubt)] if doubt and doubt != before else []

    def _scale(self, ledger: Ledger) -> int:
        budget = ledger.budget
        if not budget.needs_scale:
            return 0
        namespace = budget.view.metadata.namespace
        total = self._scales.total(namespace, budget.owners)
        is_said = any(self._scales.is_known(namespace, owner) for owner in budget.owners)
        return total if is_said or not ledger.expected else ledger.expected

    def _plan_recheck(self, ledger: Ledger, now: Instant) -> None:
        meta = ledger.budget.view.metadata
        due = ledger.budget.next_recheck(now)
        if due is not None and ledger.recheck_at is None:
            ledger.recheck_at = due + RECHECK_LAG
            self._rechecks.add(ledger.recheck_at, (meta.namespace, meta.name))


def _fail(ledger: Ledger, message: str) -> list[PatchStatus]:
    view = ledger.budget.view
    if ledger.failure == message and not view.status.disruptions_allowed:
        return []
    ledger.is_writing, ledger.failure = True, message
    return [failure_patch(view, message)]
