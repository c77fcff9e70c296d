"""Disruption: keeps the status of PodDisruptionBudgets true.

A change of a pod touches the budgets that guard it, and only one that changes a count writes
anything. The eviction subresource takes from a budget itself and notes the pod in
status.disruptedPods; until that pod terminates it counts as not healthy, so an eviction under
way is never given back.

Differs from upstream: where none of the controllers behind a budget is known, what the loaded
status expected is kept (see also `scale`), and events about pods without controllers are not
written. A DisruptionTarget condition that came to nothing is taken back as upstream does.

upstream: pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.objects import (
    ApiObject,
    Deployment,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import selector_matches
from fairlead.core.command import Command, Condition, ObjectRef, PatchStatus
from fairlead.core.instant import Instant, seconds
from fairlead.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.core.timer_queue import TimerQueue
from fairlead.workloads.budget import Budget, BudgetError, Member, Standing
from fairlead.workloads.scale import Scales
from fairlead.workloads.stale_disruption import StaleDisruptions

KIND: Final = "PodDisruptionBudget"
ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT: Final = "SufficientPods"
INSUFFICIENT: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"
# A recheck goes through a rate-limited queue whose first delay is this long.
RECHECK_LAG: Final = seconds(0.005)
RETRY_AFTER: Final = seconds(1)


@dataclass(slots=True)
class _Guarded:
    """A pod as far as budgets care, with the names of those that guard it."""

    labels: dict[str, str]
    member: Member
    budgets: tuple[str, ...]


@dataclass(slots=True)
class _Ledger:
    """A budget and what is written of it; `expected` is what its loaded status said, or 0.

    While a write is under way the view is behind it, so what happens meanwhile only makes the
    budget `is_dirty`, and it is worked out again when the write is answered. (Upstream's work
    queue gives the same: one worker per budget, and another turn for what came in between.)
    """

    budget: Budget
    is_writing: bool = False
    is_dirty: bool = False
    expected: int = 0
    is_observed: bool = False
    failure: str = ""
    recheck_at: Instant | None = None


@dataclass(slots=True)
class _Namespace:
    """The budgets and pods of one namespace, by name; `guards` remembers whom labels concern."""

    ledgers: dict[str, _Ledger] = field(default_factory=dict)
    pods: dict[str, _Guarded] = field(default_factory=dict)
    guards: dict[tuple[tuple[str, str], ...], tuple[str, ...]] = field(default_factory=dict)

    def guards_of(self, labels: dict[str, str]) -> tuple[str, ...]:
        """The budgets that guard pods with `labels`: replicas share them, so they share this."""
        key = tuple(sorted(labels.items()))
        found = self.guards.get(key)
        if found is None:
            found = tuple(name for name, one in self.ledgers.items() if _guards(one, labels))
            self.guards[key] = found
        return found


class Disruption:
    """The controller of PodDisruptionBudgets."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._namespaces: dict[str, _Namespace] = {}
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
            ledger = self._space(namespace).ledgers.get(name)
            if ledger is not None:
                ledger.recheck_at = None
                commands += self._sync(ledger, now)
        return commands

    # --- learning: each gives back the budgets it concerns ---------------------------------------

    def _see(self, one: ApiObject) -> Iterable[_Ledger]:
        match one:
            case Pod():
                self._stale.see(one)
                self._scales.see_pod(one)
                return list(self._see_pod(one))
            case PodDisruptionBudget():
                return (self._see_budget(one),)
            case Deployment() | ReplicaSet() | ReplicationController() | StatefulSet():
                is_news = self._scales.see(one)
                return self._space(one.metadata.namespace).ledgers.values() if is_news else ()
            case _:
                return ()

    def _forget(self, one: ApiObject) -> Iterable[_Ledger]:
        meta = one.metadata
        space = self._space(meta.namespace)
        match one:
            case Pod():
                self._stale.forget(one)
                self._scales.forget_pod(one)
                gone = space.pods.pop(meta.name, None)
                return [
                    space.ledgers[name]
                    for name in (gone.budgets if gone is not None else ())
                    if space.ledgers[name].budget.remove(meta.name)
                ]
            case PodDisruptionBudget():
                space.ledgers.pop(meta.name, None)
                space.guards.clear()
                for guarded in space.pods.values():
                    guarded.budgets = tuple(b for b in guarded.budgets if b != meta.name)
                return ()
            case Deployment() | ReplicaSet() | ReplicationController() | StatefulSet():
                self._scales.forget(one)
                return space.ledgers.values()
            case _:
                return ()

    def _see_pod(self, pod: Pod) -> Iterator[_Ledger]:
        meta = pod.metadata
        space = self._space(meta.namespace)
        guarded = space.pods.get(meta.name)
        member = Member.of(pod)
        if guarded is None or guarded.labels != meta.labels:
            before = guarded.budgets if guarded is not None else ()
            after = space.guards_of(meta.labels)
            for name in before:
                if name not in after and space.ledgers[name].budget.remove(meta.name):
                    yield space.ledgers[name]
            guarded = _Guarded(meta.labels, member, after)
        space.pods[meta.name] = _Guarded(guarded.labels, member, guarded.budgets)
        for name in guarded.budgets:
            if space.ledgers[name].budget.put(meta.name, member):
                yield space.ledgers[name]

    def _see_budget(self, view: PodDisruptionBudget) -> _Ledger:
        meta = view.metadata
        space = self._space(meta.namespace)
        ledger = space.ledgers.get(meta.name)
        if ledger is None or _is_rewritten(ledger.budget.view, view):
            ledger = space.ledgers[meta.name] = _Ledger(Budget(view))
            self._recruit(space, meta.name, ledger)
        ledger.budget.view = view
        return ledger

    def _recruit(self, space: _Namespace, budget_name: str, ledger: _Ledger) -> None:
        """Let a new budget, or one with another selector, find its pods."""
        space.guards.clear()
        for name, pod in space.pods.items():
            others = tuple(one for one in pod.budgets if one != budget_name)
            if _guards(ledger, pod.labels):
                ledger.budget.put(name, pod.member)
                pod.budgets = (*others, budget_name)
            else:
                pod.budgets = others

    def _load(self, objects: Iterable[ApiObject], now: Instant) -> list[Command]:
        """Take in everything first; a loaded status counts as written by somebody who knew."""
        for one in objects:
            self._see(one)
        commands: list[Command] = []
        for space in self._namespaces.values():
            for ledger in space.ledgers.values():
                ledger.is_observed = True
                ledger.expected = ledger.budget.view.status.expected_pods
                commands += self._sync(ledger, now)
        return commands

    def _see_success(self, target: ObjectRef, now: Instant) -> list[Command]:
        ledger = self._space(target.namespace).ledgers.get(target.name)
        if ledger is None:
            return []
        ledger.is_writing = False
        return self._sync(ledger, now) if ledger.is_dirty else []

    def _see_failure(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        ledger = self._space(target.namespace).ledgers.get(target.name)
        if ledger is None or reason is FailureReason.NOT_FOUND:
            return
        ledger.is_writing = ledger.is_observed = False
        self._rechecks.add(now + RETRY_AFTER, (target.namespace, target.name))

    def _space(self, namespace: str) -> _Namespace:
        return self._namespaces.setdefault(namespace, _Namespace())

    # --- deciding --------------------------------------------------------------------------------

    def _sync_all(self, ledgers: Iterable[_Ledger], now: Instant) -> list[Command]:
        return [command for ledger in ledgers for command in self._sync(ledger, now)]

    def _sync(self, ledger: _Ledger, now: Instant) -> list[Command]:
        budget = ledger.budget
        self._plan_recheck(ledger, now)
        ledger.is_dirty = ledger.is_writing
        if ledger.is_writing:
            return []
        try:
            standing = budget.standing(self._scale(ledger), now)
        except BudgetError as cause:
            return _fail(ledger, str(cause))
        if ledger.is_observed and not ledger.failure and standing.is_written_in(budget.view):
            return []
        ledger.is_writing, ledger.is_observed, ledger.failure = True, True, ""
        return [_write(budget.view, standing)]

    def _scale(self, ledger: _Ledger) -> int:
        budget = ledger.budget
        if not budget.needs_scale:
            return 0
        namespace = budget.view.metadata.namespace
        total = self._scales.total(namespace, budget.owners)
        is_said = any(self._scales.is_known(namespace, owner) for owner in budget.owners)
        return total if is_said or not ledger.expected else ledger.expected

    def _plan_recheck(self, ledger: _Ledger, now: Instant) -> None:
        meta = ledger.budget.view.metadata
        due = ledger.budget.next_recheck(now)
        if due is not None and ledger.recheck_at is None:
            ledger.recheck_at = due + RECHECK_LAG
            self._rechecks.add(ledger.recheck_at, (meta.namespace, meta.name))


def _guards(ledger: _Ledger, labels: dict[str, str]) -> bool:
    return selector_matches(ledger.budget.view.spec.selector, labels)


def _is_rewritten(before: PodDisruptionBudget, after: PodDisruptionBudget) -> bool:
    """Whether more than the status has changed: all is to be counted, and told, anew."""
    return (
        before.spec != after.spec
        or before.metadata.generation != after.metadata.generation
        or before.metadata.uid != after.metadata.uid
    )


def _write(view: PodDisruptionBudget, standing: Standing) -> PatchStatus:
    allowed = standing.disruptions_allowed
    fields: dict[str, Any] = {
        "currentHealthy": standing.current_healthy,
        "desiredHealthy": standing.desired_healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": standing.expected_pods,
        "observedGeneration": view.metadata.generation,
    }
    if standing.disrupted_pods != view.status.disrupted_pods:
        fields["disruptedPods"] = _merge_of(view.status.disrupted_pods, standing.disrupted_pods)
    # upstream: component-helpers/apps/poddisruptionbudget/helpers.go:
    # UpdateDisruptionAllowedCondition
    condition = (
        Condition(ALLOWED, "True", SUFFICIENT)
        if allowed
        else Condition(ALLOWED, "False", INSUFFICIENT)
    )
    return PatchStatus(_ref(view), fields, (condition,))


def _merge_of(before: dict[str, str], after: dict[str, str]) -> dict[str, str | None]:
    """The merge patch that makes `after` of `before`, and leaves alone what came in between."""
    return {name: after.get(name) for name in before}


def _fail(ledger: _Ledger, message: str) -> list[Command]:
    """Allow nothing while the budget cannot be worked out."""
    # upstream: pkg/controller/disruption/disruption.go:failSafe
    view = ledger.budget.view
    if ledger.failure == message and not view.status.disruptions_allowed:
        return []
    ledger.is_writing, ledger.failure = True, message
    condition = Condition(ALLOWED, "False", SYNC_FAILED, message)
    return [PatchStatus(_ref(view), {"disruptionsAllowed": 0}, (condition,))]


def _ref(view: PodDisruptionBudget) -> ObjectRef:
    meta = view.metadata
    return ObjectRef(KIND, meta.namespace, meta.name, meta.uid)
