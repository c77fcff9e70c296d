"""Scheduler: the controller that schedules one pod at a time.

    stimulus ──▶ handle: changes move pods in the queue; outcomes complete earlier commands
    deadline ──▶ handle_deadline: pop a pod, run schedule_one, then place or requeue the pod

A cycle that calls extenders is suspended until they have answered. The next cycle starts when the
current cycle has ended. After a failed cycle, the next cycle also waits for the outcome of the
status patch, as in schedule_one.go: handleSchedulingFailure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct, structs

from fairlead.api.objects import Pod, PodGroup
from fairlead.api.pods.facts import workload
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    ExtenderVerb,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import REQUESTS, Interest
from fairlead.engine.core.issuer import SCHEDULER, Issuer
from fairlead.engine.core.reporter import (
    PodBound,
    PodPlaced,
    PodPreempting,
    Reporter,
    SilentReporter,
)
from fairlead.engine.core.status import SUCCESS
from fairlead.engine.core.stimulus import (
    CallOutcome,
    CommandFailed,
    CommandSucceeded,
    ExtenderAnswered,
    Stimulus,
)
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.binding_cycle import (
    BindingCycles,
    BindingRefused,
    PodBinding,
    bound_event,
)
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, Shared, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.cycle import find_decision, known_decision
from fairlead.engine.scheduling.decision import Decision, Failure, Placement, failure_of_deleted_pod
from fairlead.engine.scheduling.failure import FailureHandler, failure_event
from fairlead.engine.scheduling.node_sample import NodeRotation
from fairlead.engine.scheduling.pending_decision import PendingDecision
from fairlead.engine.scheduling.preemption.preemptions import Execution, Preemptions
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.scheduling.queue.event_handlers import EventHandlers
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo

if TYPE_CHECKING:
    from fairlead.engine.scheduling.pod_group.placement import PodGroupMember, PodGroupResult

# The longest series of cycles in one call of `handle_deadline`. On a real cluster, other work waits
# until the call has returned.
_CYCLES_MAX: Final = 16


class _Cycle(Struct):
    """A scheduling cycle that began at `started` and ends at `ends`.

    `ends` is None until the cycle has decided. In the cycle of a PodGroup, `group` contains the
    pods of the PodGroup. `pod` is then the first of these pods, and `queued` is its queue entry.
    """

    queued: QueuedPod
    pod: PodInfo
    built: BuiltProfile
    pending: PendingDecision[Decision | PodGroupResult]
    started: Instant
    ends: Instant | None = None
    group: tuple[PodGroupMember, ...] = ()


class _PreemptingCycle(Struct, frozen=True):
    """A failed scheduling cycle that waits until the writes of its preemption are done."""

    cycle: _Cycle
    failure: Failure
    execution: Execution


class Scheduler:
    """Schedules one pod at a time, whenever `handle_deadline` is called."""

    issuer: ClassVar[Issuer] = SCHEDULER

    def __init__(
        self,
        config: SchedulerConfig,
        cluster: Cluster,
        reporter: Reporter,
        tie_break: TieBreak,
        start: Instant,
    ) -> None:
        """Set up the queue, profiles and bindings.

        Flushes of the queue happen at regular intervals after `start`. The caller must apply each
        stimulus to `cluster` before it calls `handle`.
        """
        self._config = config
        self._cluster = cluster
        self._reporter = reporter
        self._is_observed = not isinstance(reporter, SilentReporter)
        self._tie_break = tie_break
        self.nominator = Nominator()
        self._waiting_pods = WaitingPods()
        handle = PluginHandle(cluster, self.nominator, self._waiting_pods, reporter)
        shared = Shared(config.extenders, NodeRotation(cluster.table), config.version)
        self.profiles: dict[str, BuiltProfile] = {
            profile.scheduler_name: build_profile(
                profile, handle, tie_break, config.out_of_tree, config.meter, shared
            )
            for profile in config.profiles
        }
        frameworks = {name: built.framework for name, built in self.profiles.items()}
        version = config.version
        self._bindings = BindingCycles(cluster, self._waiting_pods, config.extenders, reporter)
        unbound = UnboundVictims(self._waiting_pods, self._bindings.cancel)
        self._preemptions = Preemptions(cluster, self.nominator, unbound, version.new_execution)
        self.queue = version.queue(frameworks, config.backoff, start, self._preemptions.gate)
        self._event_handlers = EventHandlers(
            cluster,
            self.queue,
            self.nominator,
            self._waiting_pods,
            frameworks,
            self._bindings.is_binding,
            pod_groups=version.pod_groups,
        )
        self._failures = FailureHandler(
            cluster,
            self.queue,
            self.nominator,
            reporter,
            observes_generation=version.observes_generation,
        )
        self._cycle: _Cycle | None = None
        self._preempting: _PreemptingCycle | None = None
        self._blocked_by: Command | None = None

    @property
    def interest(self) -> Interest:
        """The stimuli to handle, including ReadinessChanged if the cluster state stores readiness.

        If the state does not store readiness (see `Cluster.keeps_readiness`), a change of readiness
        can wake no pod.
        """
        return Interest(succeeded=REQUESTS, readiness=self._cluster.keeps_readiness)

    # --- what happened ---------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Handle a cluster change or the outcome of a command; return the commands to send."""
        if type(stimulus) is CommandSucceeded:
            if type(stimulus.command) is Bind:
                return self._bound(self._bindings.bound(stimulus.command), now)
            return self._request_answered(stimulus, now)
        if type(stimulus) is CommandFailed:
            return self._command_failed(stimulus, now)
        if type(stimulus) is ExtenderAnswered:
            return self._extender_responded(stimulus.command, stimulus, now)
        self._event_handlers.handle(self._cluster.changes, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        self._event_handlers.handle(self._cluster.changes, now)
        return ()

    def _command_failed(self, outcome: CommandFailed, now: Instant) -> list[Command]:
        command = outcome.command
        if type(command) is Bind:
            refused = self._bindings.failed(command, outcome.message)
            return self._failures.handle_refusal(refused, now) if refused is not None else []
        if type(command) is CallExtender:
            return self._extender_responded(command, outcome, now)
        return self._request_answered(outcome, now)

    def _request_answered(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command]:
        """Handle the outcome of a status patch, of a deletion, or of a command of PreBind."""
        if outcome.command is self._blocked_by:
            self._blocked_by = None
        answer = self._bindings.handle_outcome(outcome, now)
        if answer is not None:
            return self._binding_commands(answer, now)
        return self._continue_preemptions(outcome, now)

    def _bound(self, binding: PodBinding | None, now: Instant) -> list[Command]:
        """Report that the pod of `binding` is bound, and return the pod's Scheduled event."""
        if binding is None:
            return []
        pod = binding.pod
        if self._is_observed:
            self._reporter.report(
                PodBound(
                    pod=pod.ref,
                    node=binding.node,
                    at=now,
                    started=binding.started,
                    attempt=binding.attempt,
                    profile=pod.pod.spec.scheduler_name,
                    first_tried=binding.queued.first_active,
                )
            )
        return [bound_event(pod, binding.node)]

    def _continue_preemptions(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command]:
        commands, failed = self._preemptions.handle_outcome(outcome)
        for preemptor in failed:
            self.queue.activate(preemptor.key, now)
        waiting = self._preempting
        if waiting is not None and waiting.execution.is_done:
            self._preempting = None
            failure = waiting.failure
            if waiting.execution.failed:
                failure = replace(failure, nominated_node=None)
            commands += self._end_failed(waiting.cycle, failure, now)
        return commands

    # --- one pod's turn --------------------------------------------------------------------

    def binding_node(self, key: str) -> str:
        """Return the node to which the pod with `key` is being bound, or "".

        `key` is the pod's `namespace/name`.
        """
        return self._bindings.node_of(key)

    def next_deadline(self) -> Instant | None:
        """Return the next time at which `handle_deadline` has something to do, or None."""
        cycle_at = self._next_cycle_at()
        if not self._bindings.has_waits:
            return cycle_at
        waiting = self._bindings.next_deadline()
        if waiting is None or cycle_at is None:
            return waiting if cycle_at is None else cycle_at
        return min(waiting, cycle_at)

    def _next_cycle_at(self) -> Instant | None:
        """Return the time at which the current cycle ends or the next cycle may start.

        Returns None while the current cycle waits for extenders, or while the last cycle waits for
        the outcomes of its commands.
        """
        if self._cycle is not None:
            return self._cycle.ends
        if self._is_blocked:
            return None
        return self.queue.next_deadline()

    @property
    def _is_blocked(self) -> bool:
        """Whether the last cycle waits for the outcome of a command."""
        return self._blocked_by is not None or self._preempting is not None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Continue the bindings that no longer wait; if there are none, end or begin a cycle.

        A cycle that only records an event changes nothing that other controllers or bindings see.
        So the next cycle follows in the same call. One call runs up to `_CYCLES_MAX` cycles. While
        pods wait for Permit or PreBind, no further cycle follows. The reason is that a cycle may
        end these waits, and the bindings must then continue before the next cycle.
        """
        if self._bindings.has_waits:
            waiting = self._bindings.next_deadline()
            resumed = self._resume(now) if waiting is not None and waiting <= now else None
            if resumed is not None:
                return resumed
        ends = self._cycle.ends if self._cycle is not None else None
        if ends is not None and ends <= now:
            return self._end_cycle(now)
        if self._cycle is not None or self._is_blocked:
            return []
        commands = found = self._begin_next_cycle(now)
        while _is_event(found) and self._may_continue and len(commands) < _CYCLES_MAX:
            found = self._begin_next_cycle(now)
            commands = [*commands, *found]
        return commands

    @property
    def _may_continue(self) -> bool:
        return self._cycle is None and not self._is_blocked and not self._bindings.has_waits

    def _begin_next_cycle(self, now: Instant) -> list[Command]:
        queued = self.queue.pop(now)
        if queued is None:
            return []
        if self._config.version.pod_groups and queued.info.pod.spec.scheduling_group is not None:
            return self._begin_group_cycle(queued, now)
        return self._begin_cycle(queued, now)

    def _begin_cycle(self, queued: QueuedPod, now: Instant) -> list[Command]:
        pod = queued.info
        if pod.terminating:
            return [self._skip(queued)]
        built = self.profiles[pod.pod.spec.scheduler_name]
        known = known_decision(built, pod, self._tie_break)
        pending: PendingDecision[Decision | PodGroupResult] = PendingDecision(
            find_decision(built, pod, self._tie_break), known
        )
        questions = pending.begin() if known is None else ()
        self._cycle = _Cycle(queued, pod, built, pending, now)
        return self._continue_cycle(self._cycle, questions, now)

    def _skip(self, queued: QueuedPod) -> Command:
        """End the attempt of a pod that is being deleted; return the event to record."""
        self.queue.done(queued)
        return failure_event(queued.info, f"skip schedule deleting pod: {queued.info.key}")

    def _begin_group_cycle(self, queued: QueuedPod, now: Instant) -> list[Command]:
        """Begin a cycle for the waiting pods in the PodGroup of `queued`; skip terminating pods."""
        # Imported only when needed, because few clusters have PodGroups of scheduling.k8s.io. An
        # import at the start would slow down every run.
        from fairlead.engine.scheduling.pod_group.decision import (  # noqa: PLC0415
            decide_group,
            mixed_schedulers,
        )
        from fairlead.engine.scheduling.pod_group.placement import (  # noqa: PLC0415
            PodGroupMember,
        )

        waiting = self._cluster.pod_groups.unscheduled(group_key(queued.info))
        popped = [
            self.queue.pop_specific(p.key) if p.key != queued.info.key else queued for p in waiting
        ]
        found = [one for one in popped if one is not None]
        found.sort(key=_group_order)
        mixed = mixed_schedulers([one.info for one in found])
        if mixed:
            failure = Failure(mixed, is_error=True)
            cycles = (self._failures.handle(one, one.info, failure, now, now) for one in found)
            return list(chain.from_iterable(cycles))
        skipped = [self._skip(one) for one in found if one.info.terminating]
        group = tuple(PodGroupMember(one, one.info) for one in found if not one.info.terminating)
        if not group:
            return skipped
        head = group[0].pod
        built = self.profiles[head.pod.spec.scheduler_name]
        pending: PendingDecision[Decision | PodGroupResult] = PendingDecision(
            decide_group(built, group, self._tie_break, now)
        )
        self._cycle = _Cycle(group[0].queued, head, built, pending, now, group=group)
        return [*skipped, *self._continue_cycle(self._cycle, pending.begin(), now)]

    def _continue_cycle(
        self, cycle: _Cycle, questions: Sequence[Command], now: Instant
    ) -> list[Command]:
        """Return the extender calls `questions` if the cycle has not decided yet.

        If the cycle has decided, set the time at which it ends. If that time is `now`, end the
        cycle and return the resulting commands; otherwise return [].
        """
        if cycle.pending.decision is None:
            return list(questions)
        cycle.ends = now + self._config.cycle_time
        return self._end_cycle(now) if cycle.ends <= now else []

    def _extender_responded(
        self, call: CallExtender, answer: CallOutcome, now: Instant
    ) -> list[Command]:
        """Continue the cycle or the binding that called the extender."""
        if call.verb is ExtenderVerb.BIND:
            outcome = self._bindings.extender_responded(call, answer)
            if isinstance(outcome, PodBinding):
                return self._bound(outcome, now)
            return [] if outcome is None else self._binding_commands(outcome, now)
        cycle = self._cycle
        questions = cycle.pending.answer(answer) if cycle is not None else None
        if cycle is None or questions is None:
            return []
        return self._continue_cycle(cycle, questions, now)

    def _end_cycle(self, now: Instant) -> list[Command]:
        cycle, self._cycle = self._cycle, None
        assert cycle is not None
        decision = cycle.pending.decision
        assert decision is not None
        if isinstance(decision, Placement):
            return self._place(cycle, decision, now)
        if not isinstance(decision, Failure):
            return self._end_group_cycle(cycle, decision, now)
        failure = self._without_stale_preemption(cycle, decision)
        if failure.post_filter_result is None:
            return [*failure.commands, *self._end_failed(cycle, failure, now)]
        # The preemption starts before the pod is queued again, so that PreEnqueue keeps the pod out
        # of the active queue. In the returned list, the commands of the preemption come after the
        # event and the status patch of the pod (default_preemption.go: PostFilter).
        preempting, awaited = self._start_preemption(cycle.pod, failure.post_filter_result, now)
        if awaited is not None:
            self._preempting = _PreemptingCycle(cycle, failure, awaited)
            return [*failure.commands, *preempting]
        return [*failure.commands, *self._end_failed(cycle, failure, now), *preempting]

    def _end_group_cycle(
        self, cycle: _Cycle, result: PodGroupResult, now: Instant
    ) -> list[Command]:
        """Place or requeue each pod of the group; return the commands.

        The next cycle waits for the outcome of the last status patch among these commands.
        """
        from fairlead.engine.scheduling.pod_group.decision import (  # noqa: PLC0415 - as above
            group_condition,
        )

        group = self._cluster.pod_groups.group_of(cycle.pod)
        removing: list[Command] = []
        if result.victims and group is not None:
            removing = self._start_group_preemption(cycle.pod, group, result.victims, now)
        placing: list[Command] = []
        failing: list[Command] = []
        for member, decision in zip(cycle.group, result.decisions(cycle.group), strict=True):
            one = structs.replace(cycle, queued=member.queued, pod=member.pod)
            if isinstance(decision, Placement):
                placing += self._place(one, decision, now)
                continue
            failure = self._without_stale_preemption(one, decision)
            if failure.post_filter_result is not None:
                removing += self._start_preemption(member.pod, failure.post_filter_result, now)[0]
            failing += failure.commands
            failing += self._failures.handle(member.queued, member.pod, failure, cycle.started, now)
        if group is not None:
            failing += group_condition(group, result)
        self._blocked_by = _awaited(failing)
        return [*placing, *failing, *removing]

    def _end_failed(self, cycle: _Cycle, failure: Failure, now: Instant) -> list[Command]:
        """Requeue the cycle's pod; return the commands that report the failure.

        If one of the commands is a status patch, the next scheduling cycle waits for the outcome of
        the patch.
        """
        commands = self._failures.handle(cycle.queued, cycle.pod, failure, cycle.started, now)
        self._blocked_by = _awaited(commands)
        return commands

    def _without_stale_preemption(self, cycle: _Cycle, failure: Failure) -> Failure:
        """Return `failure`, but without evictions if the pod is gone, replaced or bound."""
        pod = cycle.pod
        known = self._cluster.pods.get(pod.key)
        if known is None:
            return failure_of_deleted_pod(
                pod, failure, names_preemption=cycle.built.names_preemption
            )
        is_same = known.id == pod.id and not known.pod.spec.node_name
        return failure if is_same else replace(failure, post_filter_result=None)

    def _place(self, cycle: _Cycle, placement: Placement, now: Instant) -> list[Command]:
        pod, node = cycle.pod, placement.node.name
        attempt = cycle.queued.attempts
        known = self._cluster.pods.get(pod.key)
        if known is not None and known.id == pod.id and known.pod.spec.node_name:
            self.queue.done(cycle.queued)  # bound by another scheduler during its cycle
            return []
        self.nominator.withdraw(pod.uid)
        binding = PodBinding(
            cycle.queued, pod, node, placement.state, cycle.built.framework, cycle.started, attempt
        )
        answer = self._bindings.begin(binding, now, only_bind=placement.only_bind_runs)
        if not isinstance(answer, list):
            return self._failures.handle_refusal(answer, now)
        if self._waiting_pods.find(pod.id) is None:
            self.queue.done(cycle.queued)
        if self._is_observed:
            self._reporter.report(
                PodPlaced(
                    pod=pod.ref,
                    node=node,
                    at=now,
                    via=placement.via,
                    feasible=placement.feasible,
                    equals=placement.equals,
                    started=cycle.started,
                    attempt=attempt,
                    profile=pod.pod.spec.scheduler_name,
                )
            )
        return answer

    def _resume(self, now: Instant) -> list[Command] | None:
        """Continue the bindings that no longer wait, and return their commands.

        Returns None if no binding could continue.
        """
        commands: list[Command] | None = None
        for binding, answer in self._bindings.resume(now):
            if not isinstance(answer, BindingRefused):
                self.queue.done(binding.queued)
            commands = (commands or []) + self._binding_commands(answer, now)
        return commands

    def _binding_commands(
        self, answer: list[Command] | BindingRefused, now: Instant
    ) -> list[Command]:
        if isinstance(answer, BindingRefused):
            return self._failures.handle_refusal(answer, now)
        return answer

    # --- preemption ------------------------------------------------------------------------

    def _start_preemption(
        self, pod: PodInfo, result: PostFilterResult, now: Instant
    ) -> tuple[list[Command], Execution | None]:
        """Begin the preemption; return (its first commands, its Execution).

        The Execution is None if the cycle need not wait for the end of the preemption.
        """
        self._report_preemption(pod, result, now)
        return self._preemptions.start(pod, result)

    def _start_group_preemption(
        self, pod: PodInfo, group: PodGroup, victims: tuple[PodInfo, ...], now: Instant
    ) -> list[Command]:
        """Begin the preemption for `group`, which contains `pod`; return its commands."""
        result = PostFilterResult(SUCCESS, victims=victims, pdb_violations=None)
        self._report_preemption(pod, result, now)
        from fairlead.engine.scheduling.pod_group.decision import group_ref  # noqa: PLC0415 - as above

        return self._preemptions.start_group(pod, group_ref(group), victims)

    def _report_preemption(self, pod: PodInfo, result: PostFilterResult, now: Instant) -> None:
        if not self._is_observed:
            return
        self._reporter.report(
            PodPreempting(
                pod=pod.ref,
                node=result.nominated_node or "",
                victims=tuple(victim.ref for victim in result.victims),
                pdb_violations=result.pdb_violations,
                rule=result.rule,
                candidates=result.candidates,
                equals=result.equals,
                at=now,
                workload=workload(pod.pod),
                victim_workloads=tuple(workload(victim.pod) for victim in result.victims),
                victim_priorities=tuple(victim.priority for victim in result.victims),
            )
        )


def _group_order(queued: QueuedPod) -> tuple[int, Instant]:
    """Return the sort key of a pod in a PodGroup's cycle; pods with equal keys keep their order.

    upstream: schedule_one_podgroup.go: podGroupInfoForPod
    """
    return -queued.info.priority, queued.first_active or 0


def _is_event(commands: list[Command]) -> bool:
    return len(commands) == 1 and type(commands[0]) is RecordEvent


def _awaited(commands: Sequence[Command]) -> Command | None:
    """Return the last status patch in `commands`; None if there is none.

    `commands` are the commands of one or more failed cycles. The next cycle waits for the outcome
    of the returned patch.
    """
    for command in reversed(commands):
        if type(command) is PatchStatus:
            return command
    return None
