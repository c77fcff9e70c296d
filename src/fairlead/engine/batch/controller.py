"""Batch: the controller that schedules whole jobs, in sessions, at most one session per period.

    an object changes ──(one period after the last session)──▶ session ──▶ commands

After a change, a session runs if a job has changed or a task is pending. A session also runs when a
gang has waited, or has lacked members, for too long.

upstream: pkg/scheduler/scheduler.go (runs a session every second, even without changes)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

from fairlead.api.objects import Pod, PodGroup, PriorityClass, Queue
from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.preparations import PreparationCommands
from fairlead.engine.batch.queue_usage import QueueUsage, without_jobs
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.core.command import Bind, Command, DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.interest import REQUESTS, Interest
from fairlead.engine.core.issuer import SCHEDULER, Issuer
from fairlead.engine.core.reporter import QueueAllocation, QueueMissing, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    Stimulus,
)
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster

_OURS: Final = (PodGroup, Queue, PriorityClass)
_LONG_AGO: Final[Instant] = -(1 << 62)


class Batch:
    """The batch controller. Only `handle` and `handle_deadline` change it."""

    issuer: ClassVar[Issuer] = SCHEDULER
    interest: ClassVar[Interest] = Interest(succeeded=REQUESTS, keeps_deadline=False)

    def __init__(
        self,
        config: BatchConfig,
        cluster: Cluster,
        reporter: Reporter,
        tie_break: TieBreak,
        extensions: Extensions | None = None,
    ) -> None:
        """Set up the job table, and build the plugins and actions.

        `cluster` must apply each stimulus before `handle` gets it. `extensions`, if given, replaces
        `config.extensions`. Raises BatchConfigurationError if an action or plugin is unknown or
        cannot be built.
        """
        self._cluster = cluster
        self._reporter = reporter
        self._tie_break = tie_break
        self._period = seconds(config.schedule_period_s)
        self.composition = compose(config, cluster, extensions, reporter)
        self.jobs = self.composition.jobs
        self._preparations = self.composition.policy.preparations
        self._last_usages: dict[str, QueueUsage] = {}
        self._missing: frozenset[str] = frozenset()  # the missing queues at the last session
        self._has_changed = False
        self._last: Instant = _LONG_AGO
        self._wake_at: Instant | None = None

    # --- stimuli ---------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Update the job table, and handle the outcomes of commands; sessions do the scheduling."""
        if type(stimulus) is CommandSucceeded or type(stimulus) is CommandFailed:
            return self._handle_outcome(stimulus, now)
        self.jobs.apply(stimulus)
        # A finished pod is no longer in the cluster's state, but is a member of its job.
        changed = self._cluster.changes or self.jobs.touched
        self._note_change(has_changed=bool(changed) or _is_ours(stimulus))
        if isinstance(stimulus, ObjectDeleted) and isinstance(stimulus.object, Pod):
            pod = stimulus.object
            return self._send(self._preparations.handle_deleted(pod.metadata.uid or pod.key))
        return []

    def _handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command]:
        match outcome:
            case CommandSucceeded(command=Bind() as bind):
                return self._bound(bind)
            case CommandFailed(command=Bind() as bind):
                self._undo_placement(bind.pod.uid or bind.pod.key)
            case CommandFailed(command=DeleteObject() as delete, reason=reason):
                # NOT_FOUND needs no action: the deletion of the pod is a separate stimulus
                if reason is not FailureReason.NOT_FOUND:
                    target = delete.target
                    self._note_change(
                        has_changed=self.jobs.eviction_failed(target.uid or target.key)
                    )
            case _:
                self._observe_refused_status(outcome)
                sent = self._preparations.handle_outcome(outcome, now)
                return [] if sent is None else self._send(sent)
        return []

    def _bound(self, bind: Bind) -> list[Command]:
        """Record that a pod is bound; return the event Scheduled of the pod.

        Returns [] if the pod is unknown, or if another scheduler owns it.
        """
        pod_id = bind.pod.uid or bind.pod.key
        self._preparations.bound(pod_id)
        task = self.jobs.tasks.get(pod_id)
        if task is None or not self.jobs.owns(task.info.pod):
            return []
        return [_scheduled_event(bind, task.info.pod.spec.scheduler_name)]

    def _observe_refused_status(self, outcome: CommandSucceeded | CommandFailed) -> None:
        """If a status write was refused, let the next session write the status again.

        A status is not written again if its object was not found. kube-batch repeats a refused
        write a second later.
        """
        match outcome:
            case CommandFailed(command=PatchStatus(target=target), reason=reason):
                if reason is not FailureReason.NOT_FOUND:
                    self._note_change(has_changed=self.jobs.status_write_failed(target))
            case _:
                pass

    def _send(self, sent: PreparationCommands) -> list[Command]:
        for task in sent.to_undo:
            self._undo_placement(task.id)
        return list(sent.commands)

    def _undo_placement(self, pod_id: str) -> None:
        self._preparations.release(pod_id)
        self._note_change(has_changed=self.jobs.bind_failed(pod_id))

    def _note_change(self, *, has_changed: bool) -> None:
        self._has_changed = self._has_changed or has_changed

    # --- sessions --------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """Return the time of the next session or of the next check, whichever is earlier.

        In a check, `Preparations` finds out whether the volumes and devices of tasks are ready.

        If something has changed since the last session, the next session is one period after the
        last session. Otherwise, the time of the next session is `wake_at`, which the last session
        returned; if it is None, no session is due. Returns None if nothing is due, or no job
        exists.
        """
        if not self.jobs.jobs:
            return None
        session = self._last + self._period if self._has_changed else self._wake_at
        check = self._preparations.next_deadline()
        if session is None or check is None:
            return check if session is None else session
        return min(session, check)

    @property
    def has_changed(self) -> bool:
        """Whether something has changed since the last session."""
        return self._has_changed

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Let `Preparations` check tasks if its deadline has come; otherwise run a session.

        A session runs only if it is needed.
        """
        check = self._preparations.next_deadline()
        if check is not None and check <= now:
            return [one for sent in self._preparations.check(now) for one in self._send(sent)]
        return self._hold_session(now)

    def _hold_session(self, now: Instant) -> list[Command]:
        """Run one session and return its commands; return [] if no session is needed."""
        woken = self._wake_at is not None and self._wake_at <= now
        self._has_changed, self._last = False, now
        if not woken and not self.jobs.touched and not self._has_waiting_jobs():
            return []
        done = run_session(
            self.composition, self._cluster, self._tie_break, now, reporter=self._reporter
        )
        self._wake_at = done.wake_at
        self._report(done.queues, now)
        self._report_missing(now)
        return done.commands

    def _report(self, queues: Sequence[QueueUsage], now: Instant) -> None:
        """Report the queues whose usage has changed since the last session."""
        known = {one.name for one in queues}
        gone = [without_jobs(one) for name, one in self._last_usages.items() if name not in known]
        for one in (*queues, *gone):
            if self._last_usages.get(one.name) != one:
                self._reporter.report(
                    QueueAllocation(
                        queue=one.name,
                        weight=one.weight,
                        deserved=one.deserved,
                        allocated=one.allocated,
                        request=one.request,
                        share=one.share,
                        at=now,
                    )
                )
        self._last_usages = {one.name: one for one in (*queues, *gone)}

    def _report_missing(self, now: Instant) -> None:
        """Report the missing queues for which jobs have begun to wait since the last session."""
        waiting = self.missing_queues()
        for queue in sorted(waiting.keys() - self._missing):
            self._reporter.report(QueueMissing(queue, waiting[queue], now))
        self._missing = frozenset(waiting)

    def missing_queues(self) -> dict[str, int]:
        """Return the number of jobs that wait for each missing queue."""
        return Counter(
            job.queue
            for job in self.jobs.jobs.values()
            if job.by_status[TaskStatus.PENDING] and self.lacks_queue(job)
        )

    def lacks_queue(self, job: JobInfo) -> bool:
        """Return whether the queue of `job` does not exist."""
        rules = self.composition.policy.rules
        if rules.has_default_queue and job.queue == self.jobs.default_queue:
            return False
        return job.queue not in self.jobs.queues

    def _has_waiting_jobs(self) -> bool:
        return any(job.by_status[TaskStatus.PENDING] for job in self.jobs.jobs.values())


def _scheduled_event(bind: Bind, scheduler_name: str) -> RecordEvent:
    """Return the event for a bound pod.

    The event belongs to the core API group. The default scheduler's events belong to events.k8s.io.

    upstream: kube-batch and Volcano, cache.go: Bind
    """
    return RecordEvent(
        regarding=bind.pod,
        type="Normal",
        reason="Scheduled",
        action="Scheduled",
        note=f"Successfully assigned {bind.pod.key} to {bind.node}",
        reporting_controller=scheduler_name,
    )


def _is_ours(stimulus: Stimulus) -> bool:
    """Return whether a session may be needed after `stimulus` even if no job or node changed."""
    match stimulus:
        case ObjectChanged(object=found) | ObjectDeleted(object=found):
            return isinstance(found, _OURS)
        case _:
            return True
