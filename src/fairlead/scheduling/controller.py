"""Scheduler: the controller that schedules one pod at a time.

    stimulus ──▶ handle: what changed moves pods in the queue; answers settle bindings
    deadline ──▶ handle_deadline: pop one pod, schedule_one, commands

A placed pod is *assumed* on its node until the world confirms the binding, so the next cycle
already sees it there; a refused binding forgets it and the pod waits in error backoff.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.core.command import Bind, Command
from fairlead.core.instant import Instant
from fairlead.core.reporter import PodPlaced, PodPreempting, PodUnschedulable, Reporter
from fairlead.core.status import Status, unschedulable
from fairlead.core.stimulus import CommandFailed, CommandSucceeded, Stimulus
from fairlead.core.tie_break import TieBreak
from fairlead.framework.cluster_event import (
    ClusterEvent,
    EventKind,
    assigned_pod_events,
    node_events,
    waiting_pod_events,
)
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import PostFilterResult
from fairlead.framework.nominator import Nominator
from fairlead.framework.runtime import Framework
from fairlead.scheduling.compose import Beliefs, Served, serve
from fairlead.scheduling.config import SchedulerConfig
from fairlead.scheduling.cycle import Failure, Placement, schedule_one
from fairlead.scheduling.failure import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    bound_event,
    failure_event,
    failure_patch,
)
from fairlead.scheduling.preemption.execution import PreemptionExecution
from fairlead.scheduling.queue import SchedulingQueue
from fairlead.scheduling.queued_pod import QueuedPod
from fairlead.state.cluster import Cluster, NodeChange, PodChange
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class _Binding:
    """A decision that the world has not answered yet."""

    queued: QueuedPod
    node: str
    state: CycleState


class Scheduler:
    """See the module's docstring. `handle` and `handle_deadline` are the only entrances."""

    def __init__(
        self,
        config: SchedulerConfig,
        cluster: Cluster,
        reporter: Reporter,
        tie_break: TieBreak,
        start: Instant,
    ) -> None:
        """`cluster` has applied a stimulus before it is handed to `handle`."""
        self._cluster = cluster
        self._reporter = reporter
        self._tie_break = tie_break
        self.nominator = Nominator()
        beliefs = Beliefs(cluster, self.nominator)
        self.served: dict[str, Served] = {
            profile.scheduler_name: serve(profile, beliefs, tie_break)
            for profile in config.profiles
        }
        frameworks = {name: served.framework for name, served in self.served.items()}
        self.queue = SchedulingQueue(frameworks, config.backoff, start, self._preemption_gate)
        self._binding: dict[str, _Binding] = {}
        self._preempting: dict[str, PreemptionExecution] = {}

    # --- what happened ---------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Move pods in the queue; settle what was decided."""
        match stimulus:
            case CommandSucceeded(command=Bind() as bind):
                return self._bound(bind)
            case CommandFailed(command=Bind() as bind):
                return self._bind_failed(bind, stimulus, now)
            case CommandSucceeded() | CommandFailed():
                return self._continue_preemption(stimulus, now)
            case _:
                self._take_in(now)
                return []

    def _take_in(self, now: Instant) -> None:
        for change in self._cluster.changes:
            if isinstance(change, NodeChange):
                for event in node_events(change.old, change.new):
                    self.queue.wake(event, now)
            else:
                self._take_in_pod(change, now)

    def _take_in_pod(self, change: PodChange, now: Instant) -> None:
        old, new = change.old, change.new
        was_assigned = old is not None and bool(old.pod.spec.node_name)
        is_assigned = new is not None and bool(new.pod.spec.node_name)
        if is_assigned:
            assert new is not None
            self._assigned(old if was_assigned else None, new, now)
        elif was_assigned:
            self.queue.wake(ClusterEvent(EventKind.ASSIGNED_POD_DELETE, old, None), now)
        elif new is not None:
            self._waiting(old, new, now)
        elif old is not None:
            self._waiting_gone(old, now)

    def _assigned(self, old: PodInfo | None, new: PodInfo, now: Instant) -> None:
        """A pod on a node appeared or changed, maybe through our own binding."""
        if old is not None:
            for event in assigned_pod_events(old, new):
                self.queue.wake(event, now)
            return
        if new.key not in self._binding:
            self.queue.remove(new.key)
        self.nominator.withdraw(new.uid)
        self.queue.wake(ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, new), now)

    def _waiting(self, old: PodInfo | None, new: PodInfo, now: Instant) -> None:
        """A pod without a node appeared or changed."""
        if self._cluster.is_assumed(new.key):
            return
        ours = new.pod.spec.scheduler_name in self.served
        if ours:
            self._renominate(old, new)
        if old is None:
            if ours:
                self.queue.add(new, now)
        elif ours:
            self.queue.update(new, now, list(waiting_pod_events(old, new)))
        if old is not None and _nomination(old) and not _nomination(new):
            self._room_given_up(old, now)

    def _waiting_gone(self, old: PodInfo, now: Instant) -> None:
        self.queue.remove(old.key)
        self.nominator.withdraw(old.uid)
        if old.key in self._binding:
            self.queue.wake(ClusterEvent(EventKind.ASSIGNED_POD_DELETE, old, None), now)
        elif _nomination(old):
            self._room_given_up(old, now)

    def _room_given_up(self, pod: PodInfo, now: Instant) -> None:
        """A nomination ended without a binding: as if the pod had left the node, for its equals."""
        event = ClusterEvent(EventKind.ASSIGNED_POD_DELETE, pod, None, priority_max=pod.priority)
        self.queue.wake(event, now)

    def _renominate(self, old: PodInfo | None, new: PodInfo) -> None:
        """Follow status.nominatedNodeName as the API has it (nominator.go: UpdateNominatedPod)."""
        before = _nomination(old) if old is not None else ""
        after = _nomination(new)
        if after:
            self.nominator.nominate(new, after)
        elif before:
            self.nominator.withdraw(new.uid)

    # --- one pod ---------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """At once while a pod can be tried; else when a backoff or the leftover flush is due."""
        return self.queue.next_deadline()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """One scheduling cycle."""
        queued = self.queue.pop(now)
        if queued is None:
            return []
        pod = queued.info
        if pod.terminating:
            self.queue.settle(queued)
            return [failure_event(pod, f"skip schedule deleting pod: {pod.key}")]
        served = self.served[pod.pod.spec.scheduler_name]
        decision = schedule_one(served, pod, self._tie_break)
        if isinstance(decision, Placement):
            return self._place(served, queued, decision, now)
        return self._fail(queued, decision, now)

    def _place(
        self, served: Served, queued: QueuedPod, decision: Placement, now: Instant
    ) -> list[Command]:
        """Assume, reserve, permit and bind."""
        pod, node = queued.info, decision.node
        self._cluster.assume(pod, node)
        self.nominator.withdraw(pod.uid)
        refusal = reserve_and_permit(served.framework, decision.state, pod, node.name)
        if refusal is not None:
            self._give_back(served.framework, decision.state, pod, node.name, now)
            failure = Failure(refusal.message, (refusal.plugin,), is_error=not refusal.is_rejected)
            return self._fail(queued, failure, now)
        self._binding[pod.key] = _Binding(queued, node.name, decision.state)
        self.queue.settle(queued)
        self._report_placement(pod, node, decision, now)
        return [bind_command(served.framework, pod, node.name)]

    def _report_placement(
        self, pod: PodInfo, node: NodeInfo, decision: Placement, now: Instant
    ) -> None:
        self._reporter.report(
            PodPlaced(pod.ref, node.name, now, decision.via, decision.feasible, decision.equals)
        )

    def _bound(self, bind: Bind) -> list[Command]:
        binding = self._binding.pop(bind.pod.key, None)
        if binding is None:
            return []
        pod = binding.queued.info
        for plugin in self.served[pod.pod.spec.scheduler_name].framework.post_bind:
            plugin.post_bind(pod, bind.node)
        return [bound_event(pod, bind.node)]

    def _bind_failed(self, bind: Bind, failed: CommandFailed, now: Instant) -> list[Command]:
        binding = self._binding.pop(bind.pod.key, None)
        if binding is None:
            return []
        queued = binding.queued
        pod = queued.info
        framework = self.served[pod.pod.spec.scheduler_name].framework
        self._give_back(framework, binding.state, pod, binding.node, now)
        message = f'running Bind plugin "{framework.bind[0].name}": {failed.message}'
        return self._fail(queued, Failure(message, is_error=True), now)

    def _give_back(
        self, framework: Framework, state: CycleState, pod: PodInfo, node: str, now: Instant
    ) -> None:
        """Undo `_place`; the room it took wakes whoever waits for some."""
        for plugin in reversed(framework.reserve):
            plugin.unreserve(state, pod, node)
        self._cluster.forget(pod)
        self.queue.wake(ClusterEvent(EventKind.ASSIGNED_POD_DELETE, pod, None), now)

    # --- failures --------------------------------------------------------------------------

    def _fail(self, queued: QueuedPod, failure: Failure, now: Instant) -> list[Command]:
        """upstream: handleSchedulingFailure, then the preemption it goes with."""
        tried = queued.info
        known = self._cluster.pods.get(tried.key)
        if known is not None and (known.uid != tried.uid or known.pod.spec.node_name):
            self.queue.settle(queued)  # bound by somebody else, or another pod by now
            return []
        pod = known or tried
        if known is None:
            self.queue.settle(queued)
        else:
            queued.info = known
            self.queue.put_back(queued, now, failure.plugins, is_error=failure.is_error)
            self._nominate(pod, failure.nominated_node)
        self._reporter.report(PodUnschedulable(pod.ref, now, failure.message, failure.plugins))
        reason = SCHEDULER_ERROR if failure.is_error else UNSCHEDULABLE
        commands: list[Command] = [failure_event(pod, failure.message)]
        commands += failure_patch(pod, reason, failure.message, failure.nominated_node)
        if failure.room is not None:
            commands += self._preempt(pod, failure.room, now)
        return commands

    def _nominate(self, pod: PodInfo, node: str | None) -> None:
        """None keeps an earlier nomination, as the most recent one of its node."""
        wanted = _nomination(pod) if node is None else node
        if wanted:
            self.nominator.nominate(pod, wanted)
        else:
            self.nominator.withdraw(pod.uid)

    # --- preemption ------------------------------------------------------------------------

    def _preempt(self, pod: PodInfo, room: PostFilterResult, now: Instant) -> list[Command]:
        node = room.nominated_node or ""
        self._reporter.report(
            PodPreempting(
                pod=pod.ref,
                node=node,
                victims=tuple(victim.ref for victim in room.victims),
                pdb_violations=room.pdb_violations,
                rule=room.rule,
                candidates=room.candidates,
                equals=room.equals,
                at=now,
            )
        )
        leaving = tuple(victim for victim in room.victims if not victim.terminating)
        if not leaving:
            return []
        rivals = self.nominator.pods_on(node)
        lower = tuple(rival for rival in rivals if rival.priority < pod.priority)
        execution = PreemptionExecution(pod, node, lower, leaving)
        self._preempting[pod.uid] = execution
        return self._sent(execution, execution.start(), now)

    def _continue_preemption(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command]:
        commands: list[Command] = []
        for execution in list(self._preempting.values()):
            commands += self._sent(execution, execution.answer(outcome), now)
        return commands

    def _sent(
        self, execution: PreemptionExecution, commands: list[Command], now: Instant
    ) -> list[Command]:
        if execution.is_done:
            self._preempting.pop(execution.preemptor.uid, None)
            if execution.failed:
                self.queue.activate(execution.preemptor.key, now)
        return commands

    def _preemption_gate(self, pod: PodInfo) -> Status | None:
        """A preemptor is not tried again before its last victim has been told to go.

        upstream: default_preemption.go: PreEnqueue; executor.go: IsPodRunningPreemption
        """
        execution = self._preempting.get(pod.uid)
        if execution is None:
            return None
        last = self._cluster.pods.get(execution.last_victim.key)
        if last is None or last.uid != execution.last_victim.uid or last.terminating:
            return None
        return unschedulable("waiting for the preemption for this pod to be finished").by(
            "DefaultPreemption"
        )


def _nomination(pod: PodInfo) -> str:
    return pod.pod.status.nominated_node_name


def reserve_and_permit(
    framework: Framework, state: CycleState, pod: PodInfo, node: str
) -> Status | None:
    """Run Reserve, Permit and PreBind; the first refusal, None if all agree."""
    for reserve in framework.reserve:
        status = reserve.reserve(state, pod, node)
        if status is not None and not status.is_success:
            return status.by(reserve.name)
    for permit in framework.permit:
        status = permit.permit(state, pod, node)
        if status is not None and not status.is_success:
            return status.by(permit.name)
    for pre_bind in framework.pre_bind:
        status = pre_bind.pre_bind(state, pod, node)
        if status is not None and not status.is_success:
            return status.by(pre_bind.name)
    return None


def bind_command(framework: Framework, pod: PodInfo, node: str) -> Command:
    """The first Bind plugin's command; DefaultBinder always has one."""
    for plugin in framework.bind:
        command = plugin.bind(pod, node)
        if isinstance(command, Bind):
            return command
    return Bind(pod.ref, node)
