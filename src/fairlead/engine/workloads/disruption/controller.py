"""Disruption: keeps the status of PodDisruptionBudgets true.

A change of a pod touches the budgets that budgets it, and only one that changes a count writes
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
from fairlead.engine.workloads.disruption.budget_state import BudgetState, NamespaceBudgets
from fairlead.engine.workloads.disruption.budget_status import (
    KIND,
    NO_PODS,
    UNMANAGED,
    ConditionForm,
    doubtful,
    failure_patch,
    not_counted,
    short_conditions,
    standing_patch,
)
from fairlead.engine.workloads.disruption.scale import Scales, is_scalable
from fairlead.engine.workloads.disruption.stale_disruption import StaleDisruptions
from fairlead.engine.workloads.event_sink import EventSink, NoEvents

# A recheck goes through a rate-limited queue whose first delay is this long.
RECHECK_LAG: Final = seconds(0.005)
RETRY_AFTER: Final = seconds(1)


class Disruption:
    """The controller of PodDisruptionBudgets."""

    issuer: ClassVar[Issuer] = controller_account("disruption-controller")

    def __init__(
        self, events: EventSink | None = None, form: ConditionForm = short_conditions
    ) -> None:
        """Start empty; `events` records warnings about budgets, dropped by default."""
        self._events: EventSink = events or NoEvents()
        self._form = form
        self._namespaces: dict[str, NamespaceBudgets] = {}
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
            state = self._namespace(namespace).states.get(name)
            if state is not None:
                state.recheck_at = None
                commands += self._sync(state, now)
        return commands

    # --- learning: each gives back the budgets it concerns ---------------------------------------

    def _see(self, one: ApiObject) -> Iterable[BudgetState]:
        budgets = self._namespace(one.metadata.namespace)
        match one:
            case Pod():
                self._stale.see(one)
                self._scales.see_pod(one)
                return budgets.see_pod(one)
            case PodDisruptionBudget():
                return (budgets.see_budget(one),)
            case _ if is_scalable(one):
                return budgets.states.values() if self._scales.see(one) else ()
            case _:
                return ()

    def _forget(self, one: ApiObject) -> Iterable[BudgetState]:
        budgets = self._namespace(one.metadata.namespace)
        match one:
            case Pod():
                self._stale.forget(one)
                self._scales.forget_pod(one)
                return budgets.forget_pod(one.metadata.name)
            case PodDisruptionBudget():
                budgets.forget_budget(one.metadata.name)
                return ()
            case _ if is_scalable(one):
                self._scales.forget(one)
                return budgets.states.values()
            case _:
                return ()

    def _load(self, objects: Iterable[ApiObject], now: Instant) -> list[Command]:
        """Take in everything first; a loaded status counts as written by somebody who knew."""
        for one in objects:
            self._see(one)
        commands: list[Command] = []
        for budgets in self._namespaces.values():
            for state in budgets.states.values():
                state.is_written = True
                state.expected = state.budget.view.status.expected_pods
                commands += self._sync(state, now)
        return commands

    def _see_success(self, target: ObjectRef, now: Instant) -> list[Command]:
        state = self._namespace(target.namespace).states.get(target.name)
        if state is None:
            return []
        state.is_writing = False
        return self._sync(state, now) if state.is_dirty else []

    def _see_failure(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        state = self._namespace(target.namespace).states.get(target.name)
        if state is None or reason is FailureReason.NOT_FOUND:
            return
        state.is_writing = state.is_written = False
        self._rechecks.add(now + RETRY_AFTER, (target.namespace, target.name))

    def _namespace(self, namespace: str) -> NamespaceBudgets:
        return self._namespaces.setdefault(namespace, NamespaceBudgets())

    # --- deciding --------------------------------------------------------------------------------

    def _sync_all(self, states: Iterable[BudgetState], now: Instant) -> list[Command]:
        return [command for state in states for command in self._sync(state, now)]

    def _sync(self, state: BudgetState, now: Instant) -> list[Command]:
        view = state.budget.view
        self._plan_recheck(state, now)
        state.is_dirty = state.is_writing
        if state.is_writing:
            return []
        events = self._doubts(state)
        try:
            standing = state.budget.standing(self._scale(state), now)
        except BudgetError as cause:
            failed = _fail(state, str(cause))
            if failed:
                events += self._events.record(not_counted(view, str(cause)))
            return [*events, *(self._form(one, view, now) for one in failed)]
        if state.is_written and not state.failure and standing.is_written_in(view):
            return events
        state.is_writing, state.is_written, state.failure = True, True, ""
        return [*events, self._form(standing_patch(view, standing), view, now)]

    def _doubts(self, state: BudgetState) -> list[Command]:
        """What a user should know of the pods of a budget, once each time it comes about."""
        budget = state.budget
        doubt = ""
        if not budget.members:
            doubt = NO_PODS
        elif budget.needs_scale and sum(budget.owners.values()) < len(budget.members):
            doubt = UNMANAGED
        before, state.doubt = state.doubt, doubt
        return (
            self._events.record(doubtful(budget.view, doubt)) if doubt and doubt != before else []
        )

    def _scale(self, state: BudgetState) -> int:
        budget = state.budget
        if not budget.needs_scale:
            return 0
        namespace = budget.view.metadata.namespace
        total = self._scales.total(namespace, budget.owners)
        is_said = any(self._scales.is_known(namespace, owner) for owner in budget.owners)
        return total if is_said or not state.expected else state.expected

    def _plan_recheck(self, state: BudgetState, now: Instant) -> None:
        meta = state.budget.view.metadata
        due = state.budget.next_recheck(now)
        if due is not None and state.recheck_at is None:
            state.recheck_at = due + RECHECK_LAG
            self._rechecks.add(state.recheck_at, (meta.namespace, meta.name))


def _fail(state: BudgetState, message: str) -> list[PatchStatus]:
    view = state.budget.view
    if state.failure == message and not view.status.disruptions_allowed:
        return []
    state.is_writing, state.failure = True, message
    return [failure_patch(view, message)]
