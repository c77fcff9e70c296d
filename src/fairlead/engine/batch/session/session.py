"""Session: one scheduling pass over all jobs, on one snapshot of the cluster.

    open      collect the jobs with a group and a queue, and the resources of every node
    actions   allocate, pipeline, evict and dispatch tasks, always by `move`
    close     revert the placements that were not dispatched (`close_session` writes statuses)

The session works directly on the state of the cluster. When a task gets a node, `move` assumes its
pod on that node. Filters and scores then count the pod. If the task is not dispatched, the pod is
removed from the node again.

upstream: pkg/scheduler/framework/session.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from fairlead.api.pods.facts import workload
from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.task_status import HOLDS, TaskStatus
from fairlead.engine.batch.nodes.node_choice import NodeChoice
from fairlead.engine.batch.nodes.preparations import Preparations
from fairlead.engine.batch.nodes.room import Ints, Room, RoomView
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.batch.session.plugin import BatchPlugin, EventHandler, Unschedulable
from fairlead.engine.batch.session.tier import Tiers
from fairlead.engine.core.command import Command, DeleteObject, ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import PodPlaced, PodPreempting, Reporter, SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.diagnosis import fit_error
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.shape import Amounts

_ON_NODE: Final = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


class SessionStep(Struct, frozen=True):
    """One step of a session: `verb` is `allocate`, `pipeline`, `release`, `unevict`, … or `action`.

    `detail` is the node, the reason of an eviction, or the name of the action.
    """

    verb: str
    task: TaskInfo | None
    detail: str


@runtime_checkable
class OnSessionOpen(BatchPlugin, Protocol):
    """A plugin that is called when a session opens."""

    def on_session_open(self, session: Session) -> None:
        """Prepare for `session`; discard the state of earlier sessions."""
        ...


class Observer(Protocol):
    """Receives the steps of a session."""

    def opened(self, session: Session) -> None:
        """Handle the opening of `session`, before any decision."""
        ...

    def note(self, step: SessionStep) -> None:
        """Record the completed step `step`."""
        ...

    def closing(self, session: Session) -> None:
        """Examine `session` after its last decision, before undispatched placements are undone."""
        ...


class NoObserver:
    """An observer that ignores all steps."""

    def opened(self, session: Session) -> None:
        """Do nothing."""

    def note(self, step: SessionStep) -> None:
        """Do nothing."""

    def closing(self, session: Session) -> None:
        """Do nothing."""


NO_OBSERVER: Final = NoObserver()


class NodeChoices(Struct, frozen=True):
    """Four objects of class NodeChoice, which count different resources as available.

    `now` finds nodes whose idle resources suffice. `later` finds nodes whose idle and releasing
    resources together suffice. If kube-batch's defect `evict-ignores-idle` is reproduced, `later`
    counts only the releasing resources. `either` finds all nodes that `now` or `later` finds.
    `ignoring_resources` finds nodes on which the task would fit after enough evictions.
    """

    now: NodeChoice
    later: NodeChoice
    either: NodeChoice
    ignoring_resources: NodeChoice


class ChoicesByView(Struct, frozen=True):
    """The node choices: those in `whole` may use reserved resources, those in `shared` may not."""

    shared: NodeChoices
    whole: NodeChoices


class Reservation(Struct, frozen=True):
    """Resources that are reserved for `job` on `nodes`."""

    job: JobInfo
    nodes: tuple[str, ...]
    reserved: Ints  # the amount of each resource on each node, shape (resources, rows)
    starts_at: Instant | None  # the time at which all reserved amounts are free, None if unknown
    requested: Amounts  # the sum over all nodes for each resource
    # The ids of the jobs that may use the reserved resources, too, because they would preempt `job`
    # as soon as it runs.
    ahead: frozenset[str] = frozenset()


class Policy(Struct, frozen=True, kw_only=True):
    """The settings that all sessions of a controller share.

    A gang that has waited for `starvation_bound` (ns) gets a reservation. A gang that has run with
    too few members for `broken_gang_grace` (ns) is evicted. For both, None means never.
    """

    tiers: Tiers
    rules: BatchRules
    defects: BatchDefects
    choices: ChoicesByView
    preparations: Preparations
    room: Room
    actions: tuple[str, ...] = ()
    starvation_bound: DurationNs | None = None
    broken_gang_grace: DurationNs | None = None


class Session:
    """One scheduling pass over all jobs, on one snapshot of the cluster.

    `jobs` are the jobs with a group and a queue. `outside` contains the jobs that are not admitted.
    `objections` contains the reasons of plugins to exclude jobs. `failures` contains the reasons
    why tasks of jobs were not placed. `shortfalls` has an entry for each job whose last tried task
    was pipelined. The entry contains the names of the resources that this task lacks on its node.
    `changed` contains the jobs whose tasks or admission this session changed. All these fields are
    keyed by job id.
    """

    def __init__(
        self, cluster: Cluster, jobs: JobTable, policy: Policy, tie_break: TieBreak, now: Instant
    ) -> None:
        """Store the arguments; the caller must call `open` next."""
        self.cluster = cluster
        self.table = cluster.table
        self.policy = policy
        self.tiers = policy.tiers
        self.defects = policy.defects
        self.rules = policy.rules
        self.room = policy.room
        self.reservation: Reservation | None = None
        self.tie_break = tie_break
        self.now = now
        self.job_table = jobs
        self.jobs: dict[str, JobInfo] = {}
        self.queues: dict[str, QueueInfo] = {}
        self.outside: dict[str, JobInfo] = {}
        self.objections: dict[str, Unschedulable] = {}
        self.shortfalls: dict[str, list[str]] = {}
        self.failures: dict[str, str] = {}
        self.changed: dict[str, None] = {}
        self.moved_jobs: list[JobInfo] = []  # the job of each moved task, in order
        self.commands: list[Command] = []
        self.observer: Observer = NO_OBSERVER
        self.reporter: Reporter = SilentReporter()
        self._placed: dict[str, TaskInfo] = {}
        self._listeners = [p for p in policy.tiers.plugins if isinstance(p, EventHandler)]

    # --- open and close --------------------------------------------------------------------

    def open(self) -> None:
        """Collect the jobs, queues and resources, and call `on_session_open` of the plugins."""
        leave_out = self.rules.slack if self.rules.leaves_out_overused else None
        self.room.open(self.job_table, leave_out=leave_out)
        self.queues = self._open_queues()
        self.jobs = {
            job.id: job
            for job in self.job_table.jobs.values()
            if job.group is not None and job.queue in self.queues
        }
        if self.admits_groups:
            self.outside = {job.id: job for job in self.jobs.values() if job.awaits_admission}
        if not self.defects.has(Defect.JOBVALID_NOOP):
            for job in self.jobs.values():
                objection = self.tiers.objection(job)
                if objection is not None:
                    self.objections[job.id] = objection
        for plugin in self.tiers.plugins:
            if isinstance(plugin, OnSessionOpen):
                plugin.on_session_open(self)

    def _open_queues(self) -> dict[str, QueueInfo]:
        queues = dict(self.job_table.queues)
        default = self.job_table.default_queue
        if self.rules.has_default_queue and default not in queues:
            queues[default] = QueueInfo(default)
        return queues

    def may_have_changed(self, job: JobInfo) -> bool:
        """Return whether the status of the job's group may differ from the last written status."""
        return (
            job.id in self.changed
            or job.id in self.job_table.touched
            or bool(job.by_status[TaskStatus.PENDING])
        )

    def revert_undispatched(self) -> None:
        """Revert all placements that were not dispatched."""
        for task in list(self._placed.values()):
            if task.status in _ON_NODE:
                self.move(task, TaskStatus.PENDING, None)
        self._placed.clear()

    # --- changes of tasks ------------------------------------------------------------------

    def move(self, task: TaskInfo, status: TaskStatus, node: NodeInfo | None) -> None:
        """Set the status and node of `task`, and update all sums that include it."""
        before, was = task.status, task.node
        if was:
            self._count(was, task, before, -1)
        elif node is not None:
            self.cluster.assume(task.info, node.name)
        task.job.set_status(task, status)
        self.changed[task.job.id] = None
        self.moved_jobs.append(task.job)
        task.node = "" if node is None else node.name
        if node is not None:
            self.room.count(node.row, task, status, 1)
            if was:
                self.table.pod_log.append(node.row)
        elif was:
            self.policy.preparations.release(task.id)
            self.cluster.forget(task.info)
        if HOLDS[status] is not HOLDS[before]:
            self._notify_plugins(task, holds=HOLDS[status])

    def _count(self, node: str, task: TaskInfo, status: TaskStatus, sign: int) -> None:
        found = self.table.find(node)
        if found is not None:
            self.room.count(found.row, task, status, sign)

    def _notify_plugins(self, task: TaskInfo, *, holds: bool) -> None:
        for plugin in self._listeners:
            if holds:
                plugin.allocated(task)
            else:
                plugin.deallocated(task)

    # --- steps -----------------------------------------------------------------------------

    def note(self, verb: str, task: TaskInfo | None, detail: str) -> None:
        """Report a step to the observer; `verb` and `detail` are as in `SessionStep`."""
        if self.observer is not NO_OBSERVER:
            self.observer.note(SessionStep(verb, task, detail))

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`; the task is not bound yet.

        `deallocate` undoes this.
        """
        preparations = self.policy.preparations
        found = preparations.pre_filter(task)
        self.move(task, TaskStatus.ALLOCATED, node)
        if found is not None:
            preparations.reserve(task, node.name, found)
        self._placed[task.id] = task
        self.note("allocate", task, node.name)

    def deallocate(self, task: TaskInfo) -> None:
        """Take the allocated resources from `task`, which becomes PENDING."""
        self.note("deallocate", task, task.node)
        self.move(task, TaskStatus.PENDING, None)

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto `node`, where it waits for resources that other tasks release.

        `unpipeline` undoes this.
        """
        self.move(task, TaskStatus.PIPELINED, node)
        self._placed[task.id] = task
        self.note("pipeline", task, node.name)

    def unpipeline(self, task: TaskInfo) -> None:
        """Undo `pipeline`: remove `task` from its node and set its status to PENDING."""
        self.note("unpipeline", task, task.node)
        self.move(task, TaskStatus.PENDING, None)

    def release(self, task: TaskInfo) -> None:
        """Set `task` to RELEASING, so that its resources count as releasing.

        Only `evict` deletes the pod of `task`. `unevict` sets `task` back to RUNNING.
        """
        node = self.table.find(task.node)
        self.move(task, TaskStatus.RELEASING, node)
        self.note("release", task, task.node)

    def unevict(self, task: TaskInfo) -> None:
        """Set `task` back to RUNNING, so that its resources no longer count as releasing."""
        node = self.table.find(task.node)
        self.move(task, TaskStatus.RUNNING, node)
        self.note("unevict", task, task.node)

    # --- final operations ------------------------------------------------------------------

    def dispatch_ready(self, job: JobInfo) -> None:
        """Bind the allocated tasks of `job`; the job must be ready.

        If volumes or devices must be prepared first, the tasks are bound later. If a plugin refuses
        one of the tasks, no task is bound, and all their allocations are undone.
        """
        tasks = job.with_status(TaskStatus.ALLOCATED)
        sent = self.policy.preparations.dispatch(tasks, self.now)
        if sent.refusal is not None:
            self.failures[job.id] = sent.refusal.message
            for task in tasks:
                self.deallocate(task)
            return
        self.commands += sent.commands
        for task in tasks:
            job.set_status(task, TaskStatus.BINDING)
            self.note("bind", task, task.node)
            self.reporter.report(_placed(task, self.now))

    def evict(self, task: TaskInfo, why: str) -> None:
        """Append to `commands` the deletion of the task's pod and an event about its PodGroup.

        `why` is the reason, such as "reclaim" or "preempt".
        """
        self.job_table.releasing_pods[task.id] = task.info
        self.commands.append(DeleteObject(task.ref, why=why))
        group = task.job.group
        if group is not None and group.ref is not None:
            self.commands.append(
                _evict_event(group.ref, why, self.job_table.component_of(task.job))
            )
        self.note("evict", task, why)

    def report_displacement(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Record and report that `victims` are evicted to make room for `task` on `node`.

        `why` is the reason, such as "reclaim" or "preempt".
        """
        task.job.victims.update(victim.id for victim in victims)
        self.reporter.report(
            PodPreempting(
                pod=task.ref,
                node=node.name,
                victims=tuple(victim.ref for victim in victims),
                pdb_violations=None,
                rule=why,
                candidates=1,
                equals=1,
                at=self.now,
                workload=workload(task.info.pod),
                victim_workloads=tuple(workload(victim.info.pod) for victim in victims),
                victim_priorities=tuple(victim.info.priority for victim in victims),
                via="batch",
            )
        )

    # --- failures --------------------------------------------------------------------------

    def note_shortfall(self, task: TaskInfo, node: NodeInfo) -> None:
        """Record the names of the resources that `task` currently lacks on `node`.

        `shortfalls` keeps the names until the action allocate tries the next task of the job.
        """
        names, view, slack = self.table.resources.names, self.view(task.job), self.rules.slack
        self.shortfalls[task.job.id] = [
            names[column]
            for column, amount in task.request.starting
            if amount and view.idle(column, node.row) < amount + slack.margin(column)
        ]

    def note_failure(self, task: TaskInfo) -> None:
        """Record the reason why `task` fits on no node."""
        if not self.defects.has(Defect.MUTE_FIT_ERROR):
            diagnosis = self.choices(task.job).either.find(task.info).diagnosis()
            self.failures[task.job.id] = fit_error(diagnosis, "")

    def note_over_limit(self, task: TaskInfo) -> None:
        """Record that a limit excludes `task`; `may_take` must have returned False for it.

        The limit is that of the task's queue or of an ancestor. The queue may have reached this
        limit, or the rest of the limit is reserved for another job.
        """
        if self.defects.has(Defect.MUTE_FIT_ERROR):
            return
        why = f"queue {task.job.queue} has reached its limit"
        if self.reservation is not None and self.tiers.may_take(self.queues[task.job.queue], task):
            queue, *_ = self.limits_held_for_another(task)
            why = f"the limit of queue {queue} is reserved for group {self.reservation.job.id}"
        self.failures[task.job.id] = why

    # --- queries ---------------------------------------------------------------------------

    def choices(self, job: JobInfo) -> NodeChoices:
        """Return the node choices for tasks of `job`.

        Reserved resources that `job` may use count as available.
        """
        found = self.policy.choices
        return found.whole if self._may_use_reserved(job) else found.shared

    def may_take(self, task: TaskInfo) -> bool:
        """Return whether the task's queue stays within its limits if `task` is placed.

        While a job with a reservation lacks members, the resources that are reserved for it count
        as held by its queue.
        """
        queue = self.queues[task.job.queue]
        return self.tiers.may_take(queue, task) and not self.limits_held_for_another(task)

    def limits_held_for_another(self, task: TaskInfo) -> list[str]:
        """Return the queues whose limits exclude `task` because of another job's reservation.

        The result is [] if there is no such reservation. Call this method only if the limits would
        allow `task` without the reservation.
        """
        reserved = self.reservation
        if reserved is None or self._may_use_reserved(task.job):
            return []
        placed = reserved.job.ready_count + reserved.job.waiting_count
        if placed >= reserved.job.min_available:
            return []
        changes = {reserved.job.queue: reserved.requested}
        return self.tiers.exceeded_limits(task.job.queue, task.request.running, changes)

    def view(self, job: JobInfo) -> RoomView:
        """Return the resources that `job` may use; these may include reserved resources."""
        return self.room.whole if self._may_use_reserved(job) else self.room.shared

    def _may_use_reserved(self, job: JobInfo) -> bool:
        found = self.reservation
        return found is not None and (found.job is job or job.id in found.ahead)

    @property
    def runs_backfill(self) -> bool:
        """Whether the action backfill, which places best-effort tasks, is configured."""
        return "backfill" in self.policy.actions

    @property
    def preempts_whole_gangs(self) -> bool:
        """Whether the action preempt is configured and may evict all members of a gang."""
        return "preempt" in self.policy.actions and self.rules.takes_whole_gangs

    @property
    def admits_groups(self) -> bool:
        """Whether the action `enqueue`, which admits groups, is configured."""
        return "enqueue" in self.policy.actions

    def enqueue(self, job: JobInfo) -> None:
        """Admit `job`, so that it can be scheduled from now on."""
        del self.outside[job.id]
        self.changed[job.id] = None
        self.tiers.enqueued(job)

    def candidates(self) -> list[JobInfo]:
        """Return the jobs to schedule: admitted, not excluded by a plugin, and in an open queue."""
        return [
            job
            for job in self.jobs.values()
            if job.id not in self.objections
            and job.id not in self.outside
            and self.queues[job.queue].is_open
        ]

    def note_waiting(self) -> None:
        """Update `waiting_since` and `victims` of each job.

        If `waiting_since` is None, the job does not wait to start.
        """
        for job in self.jobs.values():
            job.victims &= self.job_table.releasing_pods.keys()
            waits = bool(job.by_status[TaskStatus.PENDING]) and not job.is_ready
            if not waits:
                job.waiting_since = None
            elif job.waiting_since is None:
                job.waiting_since = self.now

    def fits_somewhere(self, task: TaskInfo) -> bool:
        """Return whether a node has enough idle resources for `task`, and passes all filters."""
        return bool(len(self.choices(task.job).now.find(task.info).positions()))

    def tasks_on(self, node: NodeInfo) -> list[TaskInfo]:
        """Return the tasks of this session's jobs on `node`, in order of arrival."""
        known, jobs = self.job_table.tasks, self.jobs
        found = (known.get(pod_id) for pod_id in node.pods)
        return [task for task in found if task is not None and task.job.id in jobs]


def _evict_event(group: ObjectRef, why: str, component: str) -> RecordEvent:
    """Return the event for an eviction; the event is about the group, not about the pod.

    upstream: cache.go: Evict
    """
    return RecordEvent(
        regarding=group,
        type="Normal",
        reason="Evict",
        action="Evict",
        note=why,
        reporting_controller=component,
    )


def _placed(task: TaskInfo, now: Instant) -> PodPlaced:
    """Return the report of a placement.

    `feasible`, `equals` and `attempt` are 1, because a session does not count them.
    """
    return PodPlaced(
        pod=task.ref,
        node=task.node,
        at=now,
        via="batch",
        feasible=1,
        equals=1,
        started=now,
        attempt=1,
        profile=task.info.pod.spec.scheduler_name,
    )
