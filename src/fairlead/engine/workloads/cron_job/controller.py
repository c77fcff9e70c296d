"""CronJobs: the controller that syncs each CronJob after a change and at its scheduled times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fairlead.api.objects import ApiObject, CronJob, Job
from fairlead.api.pods.facts import controller_of
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.interest import Interest, WritesTo
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
from fairlead.engine.workloads.cron_job.sync import CRON_JOB, CronJobState, write_status
from fairlead.engine.workloads.identity import owner_event
from fairlead.engine.workloads.status_writer import StatusWriter

RETRY_AFTER = seconds(10)
# The delay of a sync after the scheduled time. upstream: cronjob_controllerv2.go:nextScheduleDelta
SYNC_LAG = seconds(0.1)


class CronJobs:
    """The CronJob controller: creates Jobs at their scheduled times."""

    issuer: ClassVar[Issuer] = controller_account("cronjob-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(CronJob, Job),
        deleted=(CronJob, Job),
        succeeded=(WritesTo(CreateObject, ("Job",)), WritesTo(PatchStatus, (CRON_JOB,))),
        failed=(CreateObject, DeleteObject, PatchStatus),
    )

    def __init__(self) -> None:
        self._crons: dict[str, CronJobState] = {}
        self._writer = StatusWriter()
        self._timers: TimerQueue[str] = TimerQueue()
        self._changed: dict[str, None] = {}

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Store the change; return an event if a Job was created or its creation was refused.

        `handle_deadline` syncs the CronJobs after all changes of the same instant.
        """
        match stimulus:
            case ObjectChanged(one):
                self._observe(one, now)
            case ObjectDeleted(one):
                self._forget(one)
            case ObjectsLoaded(objects):
                self._load(objects, now)
            case CommandSucceeded(CreateObject() as command):
                return self._observe_creation(command.target)
            case CommandSucceeded(PatchStatus(target)) if target.kind == CRON_JOB:
                if self._writer.write_succeeded(target):
                    self._changed[target.uid] = None
            case CommandFailed(CreateObject() as command, reason, message):
                return self._observe_refusal(command.target, reason, message, now)
            case CommandFailed(PatchStatus(target), reason, _) if target.kind == CRON_JOB:
                self._observe_status_refused(target, reason, now)
            case CommandFailed(DeleteObject() as command) if command.target.kind == "Job":
                self._observe_deletion_refused(command, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time of the next scheduled sync or retry, or 0 if a CronJob has changed.

        Returns None if no CronJob has changed and no sync or retry is scheduled.
        """
        return 0 if self._changed else self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Sync CronJobs that have changed, or whose scheduled time or retry has come."""
        keys = dict.fromkeys((*self._changed, *self._timers.pop_due(now)))
        self._changed = {}
        commands: list[Command] = []
        for key in keys:
            cron = self._crons.get(key)
            if cron is not None:
                commands += cron.sync(now) + write_status(cron, self._writer)
                if cron.due is not None:
                    self._timers.add(cron.due + SYNC_LAG, key)
        return commands

    # --- observations --------------------------------------------------------------------------

    def _load(self, objects: Sequence[ApiObject], now: Instant) -> None:
        for kind in (CronJob, Job):
            for one in objects:
                if isinstance(one, kind):
                    self._observe(one, now)

    def _observe(self, one: ApiObject, now: Instant) -> None:
        match one:
            case CronJob():
                uid = one.metadata.uid
                known = self._crons.get(uid)
                if known is None:
                    self._crons[uid] = CronJobState.of(one)
                    self._changed[uid] = None
                elif known.is_rescheduled(one):
                    self._reschedule(known, one, now)
                elif known.view.spec != one.spec or known.view.metadata != one.metadata:
                    self._changed[uid] = None
                self._crons[uid].view = one
                self._writer.observe(self._crons[uid].ref)
            case Job():
                cron = self._cron_of(one)
                if cron is not None:
                    cron.observe(one)
                    self._changed[cron.view.metadata.uid] = None

    def _reschedule(self, cron: CronJobState, view: CronJob, now: Instant) -> None:
        """Store `view`, which has a new schedule, and plan a sync for the next scheduled time.

        If the schedule is invalid or has no next time, the sync is immediate.
        """
        cron.view = view
        due = cron.next_sync(now)
        if due is None:
            self._changed[view.metadata.uid] = None
        else:
            self._timers.add(due + SYNC_LAG, view.metadata.uid)

    def _forget(self, one: ApiObject) -> None:
        match one:
            case CronJob():
                deleted = self._crons.pop(one.metadata.uid, None)
                if deleted is not None:
                    self._writer.forget(deleted.ref)
            case Job():
                cron = self._cron_of(one)
                if cron is not None:
                    cron.forget(one.metadata.name)
                    self._changed[cron.view.metadata.uid] = None

    def _cron_of(self, job: Job) -> CronJobState | None:
        owner = controller_of(job.metadata)
        return None if owner is None else self._crons.get(owner.uid)

    # --- outcomes ------------------------------------------------------------------------------

    def _observe_creation(self, target: ObjectRef) -> list[Command]:
        for cron in self._creators_of(target):
            return [owner_event(cron.ref, "SuccessfulCreate", f"Created job {target.name}")]
        return []

    def _observe_refusal(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        for cron in self._creators_of(target):
            if target.name not in cron.creating:
                return []  # the Job exists although its creation was reported as failed
            del cron.creating[target.name]
            cron.last = cron.before
            if reason is FailureReason.ALREADY_EXISTS:
                return []  # the Job becomes active when it is observed, if this CronJob controls it
            self._timers.add(now + RETRY_AFTER, cron.view.metadata.uid)
            note = f"Error creating job: {message}"
            return [owner_event(cron.ref, "FailedCreate", note, is_warning=True)]
        return []

    def _creators_of(self, target: ObjectRef) -> list[CronJobState]:
        """Return the CronJob that is creating or controls the Job `target`; [] if there is none."""
        if target.kind != "Job":
            return []
        return [
            cron
            for cron in self._crons.values()
            if cron.view.metadata.namespace == target.namespace
            and (target.name in cron.creating or target.name in cron.jobs)
            and _is_named_after(target.name, cron.view.metadata.name)
        ]

    def _observe_status_refused(
        self, target: ObjectRef, reason: FailureReason, now: Instant
    ) -> None:
        """Handle a rejected status write: retry it if the CronJob still exists."""
        if reason is FailureReason.NOT_FOUND:
            self._writer.forget(target)
        elif self._writer.refused(target):
            self._timers.add(now + RETRY_AFTER, target.uid)

    def _observe_deletion_refused(self, deletion: DeleteObject, now: Instant) -> None:
        """Handle a rejected deletion: retry it if the Job still exists."""
        job = deletion.target
        for uid, cron in self._crons.items():
            if job.name in cron.deleting and cron.view.metadata.namespace == job.namespace:
                cron.undeleted[job.name] = deletion
                self._timers.add(now + RETRY_AFTER, uid)


def _is_named_after(job: str, cron_job: str) -> bool:
    return job.rpartition("-")[0] == cron_job
