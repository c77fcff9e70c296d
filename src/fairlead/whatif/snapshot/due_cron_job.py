"""The CronJobs of a cluster that are due in a period of time, and notes about them.

Plans and what-ifs do not simulate CronJobs. In the cluster, the pods of their Jobs take room, and
drains and failures evict these pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json, mapping
from fairlead.api.objects import CronJob
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.kind import CRON_JOB
from fairlead.engine.core.cron_schedule import Schedule, ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_TIMES_MAX: Final = 100  # more times are not counted


def due_cron_jobs(
    manifests: Iterable[Manifest], start: Instant, end: Instant
) -> Iterator[tuple[str, CronJob, Schedule]]:
    """Yield (key, CronJob, its schedule) for each CronJob in `manifests` that is due in a period.

    The period begins after `start` and includes `end`. Suspended and invalid CronJobs are left out,
    because they create no Jobs.
    """
    for one in samples(manifests):
        if one.kind is not CRON_JOB:
            continue
        try:
            job = decode_as(CronJob, one.value)
            schedule = read_schedule(job.spec.schedule, job.spec.time_zone)
        except (DecodeError, ScheduleError):
            continue
        first = schedule.after(start)
        if not job.spec.suspend and first is not None and first <= end:
            yield one.ref.key, job, schedule


def due_cron_job_notes(
    manifests: Iterable[Manifest], start: Instant, end: Instant, during: str
) -> Iterator[str]:
    """Yield a note about the CronJobs in `manifests` that are due after `start` and until `end`.

    `during` is the note's phrase for this period, such as `During the drains`.
    """
    found = due_cron_jobs(manifests, start, end)
    due = [(_times(schedule, start, end), key) for key, _, schedule in found]
    if due:
        due.sort(key=lambda one: (-one[0], one[1]))
        names = listed([f"{key} {_times_words(times)}" for times, key in due])
        is_one = len(due) == 1
        what = f"{counted(len(due), 'CronJob')} {'is' if is_one else 'are'} due ({names})"
        yield f"{during}, {what}; {'its' if is_one else 'their'} Jobs are not simulated."


def later_cron_job_notes(
    cron_jobs: Iterable[Json], initial: Iterable[Manifest], start: Instant, end: Instant
) -> Iterator[str]:
    """Yield a note about the `cron_jobs` that created no Job, because they are due after `end`.

    Call this function for a run that simulates CronJobs, and that has ended at `end` because
    nothing changed any more. `start` is the beginning of the run, and `initial` are the objects
    that existed then. Suspended and invalid CronJobs are left out. A CronJob that creates a Job at
    the start of the run, for a time that it missed before, is left out, too.
    """
    before = {
        one.ref.key: _last_time(one.value) for one in samples(initial) if one.kind is CRON_JOB
    }
    later: list[tuple[Instant, str]] = []
    for value in cron_jobs:
        try:
            job = decode_as(CronJob, value)
            schedule = read_schedule(job.spec.schedule, job.spec.time_zone)
        except (DecodeError, ScheduleError):
            continue
        created = job.metadata.creation_timestamp
        due = schedule.after(max(start, parse_timestamp(created) if created else start))
        has_created = _last_time(value) != before.get(job.key)
        if due is not None and due > end and not job.spec.suspend and not has_created:
            later.append((due, job.key))
    if later:
        keys = [key for _, key in sorted(later)]
        noun, they_were = ("CronJob", "it was") if len(keys) == 1 else ("CronJobs", "they were")
        yield (
            f"{noun} {listed(keys)} created no Job, because the simulation ended before "
            f"{they_were} due, first at {format_timestamp(min(later)[0])}. Set duration: without "
            "it, a simulation does not wait for CronJobs."
        )


def _last_time(cron_job: Json) -> Any:
    """Return the last scheduled time for which `cron_job` created a Job, or None."""
    return mapping(cron_job, "status").get("lastScheduleTime")


def _times(schedule: Schedule, start: Instant, end: Instant) -> int:
    """Return how often `schedule` is due in (`start`, `end`], at most _TIMES_MAX + 1."""
    count, at = 0, schedule.after(start)
    while at is not None and at <= end and count <= _TIMES_MAX:
        count, at = count + 1, schedule.after(at)
    return count


def _times_words(times: int) -> str:
    return f"over {_TIMES_MAX} times" if times > _TIMES_MAX else counted(times, "time")
