"""due_cron_jobs: the CronJobs of a cluster that create Jobs in a period of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.objects import CronJob
from fairlead.apiserver.kind import CRON_JOB
from fairlead.engine.core.cron_schedule import Schedule, ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples


def due_cron_jobs(
    manifests: Iterable[Manifest], start: Instant, end: Instant
) -> Iterator[tuple[str, CronJob, Schedule]]:
    """Yield (key, CronJob, its schedule) of those in `manifests` that are due in a period of time.

    They are due at least once after `start` and not after `end`. Suspended and invalid CronJobs are
    left out, because they create no Jobs.
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
