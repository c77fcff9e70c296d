"""CronJobState: creates a Job at each scheduled time.

    due ──▶ missed by more than startingDeadlineSeconds     skip
        ──▶ Forbid, and a Job is running                    skip
        ──▶ Replace                                         delete the running Jobs first
        ──▶ create a Job named after the scheduled minute

If several scheduled times were missed, only the last missed time gets a Job. Finished Jobs that
exceed the history limits are deleted.

upstream: pkg/controller/cronjob/cronjob_controllerv2.go:syncCronJob, cleanupFinishedJobs
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import CronJob, Job
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp, parse_timestamp
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef
from fairlead.engine.core.cron_schedule import (
    Schedule,
    ScheduleError,
    missed_times,
    most_recent,
    next_time,
    read_schedule,
    read_zone,
)
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.identity import owner_event
from fairlead.engine.workloads.job.rule import has_condition, is_finished
from fairlead.engine.workloads.status_writer import StatusWriter

CRON_JOB: Final = "CronJob"
SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
WHY_REPLACED: Final = "replaced by a new Job of its CronJob"
WHY_HISTORY: Final = "older than its CronJob's history"
MINUTE: Final = 60 * NANOSECONDS_PER_SECOND
# upstream: pkg/controller/cronjob/utils.go:mostRecentScheduleTime
MISSED_MAX: Final = 100
TOO_MANY_MISSED: Final = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


class CronJobState(Struct):
    """A CronJob with its Jobs by name.

    The fields of type `dict[str, None]` contain names of Jobs.
    """

    view: CronJob
    last: Instant | None = None  # the last scheduled time with a Job
    # The previous value of `last`, which it gets again if its Job cannot be created.
    before: Instant | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    creating: dict[str, None] = field(default_factory=dict)  # creation requested
    running: dict[str, None] = field(default_factory=dict)  # unfinished
    deleting: dict[str, None] = field(default_factory=dict)  # deletion requested
    # The refused deletions, by Job name.
    undeleted: dict[str, DeleteObject] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)  # finished
    # Unfinished when another client deleted them; the next sync records a MissingJob event for
    # each.
    missing: dict[str, None] = field(default_factory=dict)
    successful_at: str = ""  # lastSuccessfulTime, or "" if no Job has succeeded
    reported: str = ""  # the note of the last event; an event with the same note is not recorded
    due: Instant | None = None  # the next scheduled time

    @classmethod
    def of(cls, view: CronJob) -> CronJobState:
        """Return the initial state of a newly observed CronJob."""
        last = view.status.get("lastScheduleTime")
        cron = cls(view, parse_timestamp(last) if last else None)
        cron.successful_at = view.status.get("lastSuccessfulTime", "")
        cron.running = {entry.get("name", ""): None for entry in view.status.get("active", ())}
        return cron

    @property
    def ref(self) -> ObjectRef:
        """Object reference of the CronJob."""
        meta = self.view.metadata
        return ObjectRef(CRON_JOB, meta.namespace, meta.name, meta.uid)

    @property
    def active(self) -> list[Job]:
        """The Jobs in `running`, except those that have finished since the last sync."""
        jobs = self.jobs.items()
        return [job for name, job in jobs if name in self.running and not is_finished(job)]

    def observe(self, job: Job) -> None:
        """Store the newest version of one of the CronJob's Jobs."""
        name = job.metadata.name
        self.jobs[name] = job
        if name in self.creating:
            del self.creating[name]
            self.running[name] = None

    def forget(self, name: str) -> None:
        """Remove a deleted Job."""
        if name in self.running and name not in self.deleting:
            self.missing[name] = None
        for known in (self.jobs, self.running, self.deleting, self.undeleted, self.ended):
            known.pop(name, None)

    # --- decisions -----------------------------------------------------------------------------

    @property
    def _since(self) -> Instant:
        """The last scheduled time for which a Job was created.

        If no Job was created, `_since` is the time at which the CronJob was created.
        """
        return (
            parse_timestamp(self.view.metadata.creation_timestamp)
            if self.last is None
            else self.last
        )

    def is_rescheduled(self, view: CronJob) -> bool:
        """Return whether `view`, a newer version, has a different schedule or time zone."""
        known = self.view.spec
        return (known.schedule, known.time_zone) != (view.spec.schedule, view.spec.time_zone)

    def next_sync(self, now: Instant) -> Instant | None:
        """Return the time at which to sync after a change of the schedule.

        The result is the first time of the schedule after `now`. If the schedule is invalid or has
        no such time, the result is None, and the caller must sync immediately.
        """
        # upstream: cronjob_controllerv2.go:updateCronJob
        try:
            schedule = read_schedule(self.view.spec.schedule, self.view.spec.time_zone)
        except ScheduleError:
            return None
        return next_time(schedule, self._since, now)

    def sync(self, now: Instant) -> list[Command]:
        """Return the commands that the CronJob needs now; set `due` to the next scheduled time.

        `due` is None if the CronJob is suspended or being deleted, or if its schedule is invalid.
        """
        commands = [*self._note_ended(), *self.undeleted.values(), *self._delete_old()]
        self.undeleted = {}
        self.due = None
        spec = self.view.spec
        if self.view.metadata.deletion_timestamp or spec.suspend:
            return commands
        try:
            schedule = read_schedule(spec.schedule, spec.time_zone)
        except ScheduleError as cause:
            return commands + self._warn(str(cause))
        commands += self._start(schedule, now)
        self.due = next_time(schedule, self._since, now)
        return commands

    def status(self) -> Json:
        """Return the status that the CronJob should have now."""
        running = sorted(self.active, key=lambda job: job.metadata.name)
        # References keep the resourceVersion from the creation of the Job.
        known = {entry.get("uid"): entry for entry in self.view.status.get("active", ())}
        active = [known.get(job.metadata.uid) or _reference(job) for job in running]
        status: Json = {"active": active} if active else {}
        # lastScheduleTime is written only after the Job exists. Otherwise, a controller that is
        # restarted in between would never create the Job.
        last = self.before if self.creating else self.last
        if last is not None:
            status["lastScheduleTime"] = format_timestamp(last)
        if self.successful_at:
            status["lastSuccessfulTime"] = self.successful_at
        return status

    def overdue(self, schedule: Schedule, now: Instant) -> Instant | None:
        """Return the scheduled time for which a Job may start now; None if there is none.

        The result is the last time of `schedule` that is not after `now`. Returns None if this time
        is `last`, the time of the latest Job, or was missed by more than startingDeadlineSeconds.
        """
        due = most_recent(schedule, self._starts_after(now), now)
        return None if due == self.last else due

    def _starts_after(self, now: Instant) -> Instant:
        """Return the time after which a scheduled time may still get a Job."""
        deadline = self.view.spec.starting_deadline_seconds
        return self._since if deadline is None else max(self._since, now - seconds(deadline))

    def _start(self, schedule: Schedule, now: Instant) -> list[Command]:
        meta, spec = self.view.metadata, self.view.spec
        due = self.overdue(schedule, now)
        if due is None:
            return []
        name = f"{meta.name}-{due // MINUTE}"
        if name in self.jobs or name in self.creating:
            self.last = due
            self._adopt(name)
            return []
        running = self.active
        if spec.concurrency_policy == "Forbid" and (running or self.creating):
            note = (
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid"
            )
            return self._report("JobAlreadyActive", note)
        commands: list[Command] = []
        if missed_times(schedule, self._starts_after(now), now) > MISSED_MAX:
            commands.append(
                owner_event(self.ref, "TooManyMissedTimes", TOO_MANY_MISSED, is_warning=True)
            )
        if spec.concurrency_policy == "Replace":
            for job in running:
                commands += self._delete(job, WHY_REPLACED)
        self.before, self.last, self.reported = self.last, due, ""
        self.creating[name] = None
        return [*commands, CreateObject(self._manifest(name, due))]

    def _adopt(self, name: str) -> None:
        """Add the Job `name` to `running` if the Job already exists and is unfinished.

        The controller may have created the Job and then restarted before it wrote the status of the
        CronJob. After such a restart, `running` does not contain the Job.

        upstream: pkg/controller/cronjob/cronjob_controllerv2.go: syncCronJob (IsAlreadyExists)
        """
        job = self.jobs.get(name)
        if job is not None and not is_finished(job):
            self.running[name] = None

    def _manifest(self, name: str, due: Instant) -> Json:
        # upstream: pkg/controller/cronjob/utils.go:getJobFromTemplate2
        meta, template = self.view.metadata, self.view.spec.job_template
        described = template.get("metadata", {})
        zone = read_zone(self.view.spec.time_zone)
        at = datetime.fromtimestamp(due // NANOSECONDS_PER_SECOND, zone)
        stamp = at.isoformat() if zone is not UTC else format_timestamp(due)
        owner = {
            "apiVersion": "batch/v1",
            "kind": CRON_JOB,
            "name": meta.name,
            "uid": meta.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata: Json = {"name": name, "namespace": meta.namespace, "ownerReferences": [owner]}
        if described.get("labels"):
            metadata["labels"] = described["labels"]
        metadata["annotations"] = {**described.get("annotations", {}), SCHEDULED_AT: stamp}
        spec = template.get("spec", {})
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    # --- Jobs that have ended --------------------------------------------------------------------

    def _note_ended(self) -> list[Command]:
        """Record the Jobs that have ended since the last sync; return events about Jobs."""
        commands: list[Command] = []
        for name, job in self.jobs.items():
            if not is_finished(job):
                if name not in self.running:
                    note = f"Saw a job that the controller did not create or forgot: {name}"
                    commands.append(owner_event(self.ref, "UnexpectedJob", note, is_warning=True))
                continue
            if name in self.ended:
                continue
            self.ended[name] = None
            self.successful_at = max(self.successful_at, job.status.completion_time)
            if name in self.running:
                del self.running[name]
                how = "Complete" if has_condition(job, "Complete") else "Failed"
                note = f"Saw completed job: {name}, condition: {how}"
                commands.append(owner_event(self.ref, "SawCompletedJob", note))
        for name in self.missing:
            note = f"Active job went missing: {name}"
            commands.append(owner_event(self.ref, "MissingJob", note))
        self.missing = {}
        return commands

    def _delete_old(self) -> list[Command]:
        spec = self.view.spec
        limits = {
            "Complete": spec.successful_jobs_history_limit,
            "Failed": spec.failed_jobs_history_limit,
        }
        commands: list[Command] = []
        for condition, limit in limits.items():
            found = [
                (job.status.start_time, name, job)
                for name, job in self.jobs.items()
                if has_condition(job, condition) and name not in self.deleting
            ]
            found.sort(key=lambda entry: entry[:2])
            for _, _, job in found[: max(0, len(found) - limit)]:
                commands += self._delete(job, WHY_HISTORY)
        return commands

    def _delete(self, job: Job, why: str) -> list[Command]:
        meta = job.metadata
        if meta.name in self.deleting:
            return []
        self.deleting[meta.name] = None
        ref = ObjectRef("Job", meta.namespace, meta.name, meta.uid)
        event = owner_event(self.ref, "SuccessfulDelete", f"Deleted job {meta.name}")
        return [DeleteObject(ref, why=why), event]

    # --- events ----------------------------------------------------------------------------------

    def _warn(self, problem: str) -> list[Command]:
        if problem.startswith("unknown time zone"):
            note = f'invalid timeZone: "{self.view.spec.time_zone}": {problem}'
            return self._report("UnknownTimeZone", note, is_warning=True)
        note = f'unparseable schedule: "{self.view.spec.schedule}" : {problem}'
        return self._report("UnparseableSchedule", note, is_warning=True)

    def _report(self, reason: str, note: str, *, is_warning: bool = False) -> list[Command]:
        """Return an event with `note`, or [] if the previous event had the same note."""
        if self.reported == note:
            return []
        self.reported = note
        return [owner_event(self.ref, reason, note, is_warning=is_warning)]


def write_status(cron: CronJobState, writer: StatusWriter) -> list[Command]:
    """Return the write of the CronJob's status, if the status has changed."""
    before: Mapping[str, Any] = cron.view.status
    return writer.write(cron.ref, before, cron.status())


def _reference(job: Job) -> Json:
    meta = job.metadata
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
