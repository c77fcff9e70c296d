"""Notes the CronJobs that would create Jobs during a scenario if its settings enabled them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.codec import decode_as
from fairlead.api.objects import CronJob
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import CRON_JOB
from fairlead.engine.core.cron_schedule import ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest

_NAMES_MAX = 2


def idle_cron_job_notes(initial: Iterable[Manifest], start: Instant, end: Instant) -> Iterator[str]:
    """Yield a note about the CronJobs in `initial` that are due after `start`, and before `end`."""
    due = [
        one.ref.key
        for one in initial
        if one.kind is CRON_JOB and _is_due(decode_as(CronJob, one.value), start, end)
    ]
    if due:
        noun, verb = ("CronJob", "creates") if len(due) == 1 else ("CronJobs", "create")
        yield (
            f"{noun} {listed(due, _NAMES_MAX)} {verb} no Jobs here; with settings.cron-jobs: true, "
            f"{'it does' if len(due) == 1 else 'they do'}."
        )


def _is_due(job: CronJob, start: Instant, end: Instant) -> bool:
    try:
        due = read_schedule(job.spec.schedule, job.spec.time_zone).after(start)
    except ScheduleError:
        return False
    return not job.spec.suspend and due is not None and due < end
