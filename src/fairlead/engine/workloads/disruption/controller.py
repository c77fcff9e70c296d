"""Disruption: keeps the status of PodDisruptionBudgets current, and resets stale DisruptionTargets.

The eviction subresource decrements disruptionsAllowed and records the pod in status.disruptedPods.
Until that pod terminates, it counts as unhealthy. So the same disruption is not granted twice.

A component that is about to delete a pod sets the condition DisruptionTarget first. If the deletion
does not follow within two minutes, the condition is set to False. Conditions that the kubelet set
are not changed, because a graceful shutdown may take longer.

Differs from upstream: if none of the controllers of a budget's pods is known, expectedPods in the
loaded status is kept (see also `scale`).

upstream: pkg/controller/disruption/disruption.go (nonTerminatingPodHasStaleDisruptionCondition)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Pod, PodDisruptionBudget, Unstructured
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command, Condition, ObjectRef, PatchStatus, pod_ref
from fairlead.engine.core.instant import DurationNs, Instant, earliest, seconds
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.disruption.budget import BudgetError
from fairlead.engine.workloads.disruption.budget_state import BudgetState, NamespaceBudgets
from fairlead.engine.workloads.disruption.budget_status import (
    KIND,
    NO_PODS,
    UNMANAGED,
    ConditionForm,
    count_warning,
    failure_patch,
    pods_warning,
    several_budgets_warning,
    short_conditions,
    status_patch,
)
from fairlead.engine.workloads.disruption.scale import SCALABLE, Scales, is_scalable
from fairlead.engine.workloads.event_sink import EventSink, NoEvents
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    NoOtherScales,
    OtherScales,
)
from fairlead.engine.workloads.int_or_percent import IntOrPercentError

# the first delay of the rate-limited queue of rechecks
RECHECK_LAG: Final = seconds(0.005)
DISRUPTION_TARGET: Final = "DisruptionTarget"
TERMINATION_BY_KUBELET: Final = "TerminationByKubelet"
STALE_AFTER: Final[DurationNs] = seconds(120)


class Disruption:
    """The disruption controller: keeps the status of PodDisruptionBudgets current."""

    issuer: ClassVar[Issuer] = controller_account("disruption-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, PodDisruptionBudget, *SCALABLE, Unstructured),
        deleted=(Pod, PodDisruptionBudget, *SCALABLE, Unstructured),
        succeeded=(WritesTo(PatchStatus, (KIND,)),),
        failed=(WritesTo(PatchStatus, (KIND,)),),
    )

    def __init__(
        self,
        events: EventSink | None = None,
        form: ConditionForm = short_conditions,
        others: OtherScales | None = None,
        config: WorkloadsConfig | None = None,
    ) -> None:
        """Start empty; `events` records the events about budgets (default: they are dropped).

        `form` is called with each status patch and completes the patch's conditions. `others` are
        the scales of custom resources. As in upstream, a change of such a scale does not update a
        budget. The budget uses the new scale at its next update, for example when one of the
        budget's pods changes. `config` bounds the backoff after a refused write.
        """
        self._config = config or WorkloadsConfig()
        self._events: EventSink = events or NoEvents()
        self._form = form
        self._namespaces: dict[str, NamespaceBudgets] = {}
        self._scales = Scales(others or NoOtherScales())
        self._stale = StaleDisruptions()
        self._rechecks: TimerQueue[tuple[str, str]] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return status writes of the budgets that `stimulus` affects."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Pod:
                return [*self.handle_pod(changed, now)]
            return self._sync_all(self._observe(changed), now)
        if type(stimulus) is ObjectDeleted:
            return self._sync_all(self._forget(stimulus.object), now)
        if type(stimulus) is ObjectsLoaded:
            return self._load(stimulus, now)
        if type(stimulus) is CommandSucceeded:
            written = stimulus.command
            if type(written) is PatchStatus and written.target.kind == KIND:
                return self._observe_success(written.target, now)
        elif type(stimulus) is CommandFailed:
            refused = stimulus.command
            if type(refused) is PatchStatus and refused.target.kind == KIND:
                self._observe_failure(refused.target, stimulus.reason, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        self._stale.observe(pod)
        self._scales.observe_pod(pod)
        return self.handle_readiness(pod, now)

    def handle_readiness(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Count `pod` for the budgets that select it; return the resulting writes.

        Call this method only if neither the pod's DisruptionTarget condition nor the number of
        active pods has changed.
        """
        changed = self._namespace(pod.metadata.namespace).observe_pod(pod)
        return self._react(pod, changed, now) if changed else ()

    def next_deadline(self) -> Instant | None:
        """Return the time of the next recount of a budget or the next reset of a condition.

        Returns None if no recount and no reset is scheduled.
        """
        return earliest(self._rechecks.next_due(), self._stale.next_due())

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Sync the budgets that are due, and reset stale DisruptionTarget conditions.

        A budget is due when one of its granted evictions has expired. It is also due when the delay
        after a refused write of its status has passed.
        """
        commands = self._stale.reset_stale(now)
        for namespace, name in self._rechecks.pop_due(now):
            state = self._namespace(namespace).states.get(name)
            if state is not None:
                state.recheck_at = None
                commands += self._sync(state, now)
        return commands

    # --- observations: each returns the budgets that it affects ----------------------------------

    def _observe(self, one: ApiObject) -> Iterable[BudgetState]:
        budgets = self._namespace(one.metadata.namespace)
        if type(one) is PodDisruptionBudget:
            return (budgets.observe_budget(one),)
        if type(one) is Pod:
            self._stale.observe(one)
            self._scales.observe_pod(one)
            return budgets.observe_pod(one)
        if is_scalable(one):
            return budgets.states.values() if self._scales.observe(one) else ()
        self._scales.others.observe(one)
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
                self._scales.others.forget(one)
                return ()

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        """Store all objects, then sync the budgets; a correct loaded status is not rewritten."""
        for one in loaded.others:  # a CustomResourceDefinition may follow its objects
            self._scales.others.observe(one)
        for some in loaded.grouped:
            if isinstance(some, Replicas):
                self._load_replicas(some)
            else:
                self._observe(some)
        commands: list[Command] = []
        states = [one for budgets in self._namespaces.values() for one in budgets.states.values()]
        for state in states:
            self._scales.learn(state.budget.view)
        for state in states:
            state.is_written = True
            state.expected = state.budget.view.status.expected_pods
            commands += self._sync(state, now)
        return commands

    def _load_replicas(self, replicas: Replicas) -> None:
        if condition(replicas[0], DISRUPTION_TARGET) is not None:
            for pod in replicas:
                self._stale.observe(pod)
        self._scales.load_pods(replicas)
        self._namespace(replicas[0].metadata.namespace).load_pods(replicas)

    def _observe_success(self, target: ObjectRef, now: Instant) -> list[Command]:
        state = self._namespace(target.namespace).states.get(target.name)
        if state is None:
            return []
        state.is_writing = False
        state.refusals = 0
        return self._sync(state, now) if state.is_dirty else []

    def _observe_failure(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        state = self._namespace(target.namespace).states.get(target.name)
        if state is None or reason is FailureReason.NOT_FOUND:
            return
        state.is_writing = state.is_written = False
        state.refusals += 1
        due = now + self._config.retry_after(state.refusals)
        self._rechecks.add(due, (target.namespace, target.name))

    def _namespace(self, namespace: str) -> NamespaceBudgets:
        found = self._namespaces.get(namespace)
        if found is None:
            found = self._namespaces[namespace] = NamespaceBudgets()
        return found

    # --- decisions -------------------------------------------------------------------------------

    def _sync_all(self, states: Iterable[BudgetState], now: Instant) -> list[Command]:
        commands: list[Command] = []
        for state in states:
            commands += self._sync(state, now)
        return commands

    def _react(self, pod: Pod, changed: list[BudgetState], now: Instant) -> list[Command]:
        """Return the writes for the `changed` budgets; add a warning if several select `pod`."""
        commands = self._sync_all(changed, now)
        meta = pod.metadata
        if len(changed) > 1:
            names = sorted(
                one.budget.view.metadata.name for one in changed if one.selects(meta.labels)
            )
            if len(names) > 1:
                warning = several_budgets_warning(pod_ref(pod), names[0])
                return [*self._events.record(warning), *commands]
        return commands

    def _sync(self, state: BudgetState, now: Instant) -> list[Command]:
        view = state.budget.view
        if view.status.disrupted_pods and state.recheck_at is None:
            self._plan_recheck(state, now)
        state.is_dirty = state.is_writing
        if state.is_writing:
            return []
        events = self._warnings(state)
        try:
            status = state.budget.status(self._scale(state), now)
        except (BudgetError, IntOrPercentError) as cause:
            failed = _fail(state, str(cause))
            if failed:
                events += self._events.record(count_warning(view, str(cause)))
            return [*events, *(self._form(one, view, now) for one in failed)]
        if state.is_written and not state.failure and status.is_written_in(view):
            return events
        state.is_writing, state.is_written, state.failure = True, True, ""
        return [*events, self._form(status_patch(view, status), view, now)]

    def _warnings(self, state: BudgetState) -> list[Command]:
        """Return an event about the pods of a budget if a new problem appears."""
        budget = state.budget
        warning = ""
        if not budget.members:
            warning = NO_PODS
        elif budget.needs_scale and sum(budget.owners.values()) < len(budget.members):
            warning = UNMANAGED
        before, state.warning = state.warning, warning
        return (
            self._events.record(pods_warning(budget.view, warning))
            if warning and warning != before
            else []
        )

    def _scale(self, state: BudgetState) -> int:
        budget = state.budget
        if not budget.needs_scale:
            return 0
        return self._scales.total(budget.view.metadata.namespace, budget.owners, state.expected)

    def _plan_recheck(self, state: BudgetState, now: Instant) -> None:
        due = state.budget.next_recheck(now)
        if due is not None:
            meta = state.budget.view.metadata
            state.recheck_at = due + RECHECK_LAG
            self._rechecks.add(state.recheck_at, (meta.namespace, meta.name))


def _fail(state: BudgetState, message: str) -> list[PatchStatus]:
    view = state.budget.view
    if state.failure == message and not view.status.disruptions_allowed:
        return []
    state.is_writing, state.failure = True, message
    return [failure_patch(view, message)]


class StaleDisruptions(Struct):
    """Pods with a DisruptionTarget condition, and the time at which the condition becomes stale."""

    _announced: dict[str, tuple[ObjectRef, Instant]] = field(default_factory=dict)  # by pod key
    _timers: TimerQueue[str] = field(default_factory=TimerQueue)

    def observe(self, pod: Pod) -> None:
        """Store the newest version of `pod`."""
        due = _stale_at(pod)
        if due is None:
            if self._announced:
                self._announced.pop(pod.key, None)
        elif self._announced.get(pod.key) != (pod_ref(pod), due):
            self._announced[pod.key] = (pod_ref(pod), due)
            self._timers.add(due, pod.key)

    def forget(self, pod: Pod) -> None:
        """Remove `pod`."""
        self._announced.pop(pod.key, None)

    def next_due(self) -> Instant | None:
        """Return the time at which the next condition becomes stale, or None."""
        return self._timers.next_due()

    def reset_stale(self, now: Instant) -> list[Command]:
        """Return the patches that reset the conditions that are stale at `now`."""
        commands: list[Command] = []
        for key in self._timers.pop_due(now):
            announced = self._announced.get(key)
            if announced is not None and announced[1] <= now:
                del self._announced[key]
                taken_back = Condition(DISRUPTION_TARGET, "False")
                commands.append(PatchStatus(announced[0], conditions=(taken_back,)))
        return commands


def _stale_at(pod: Pod) -> Instant | None:
    target = condition(pod, DISRUPTION_TARGET)
    if target is None or target.status != "True" or target.reason == TERMINATION_BY_KUBELET:
        return None
    if is_terminating(pod) or is_terminal(pod) or not target.last_transition_time:
        return None
    return parse_timestamp(target.last_transition_time) + STALE_AFTER
