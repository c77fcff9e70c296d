"""due_cron_job_notes: which CronJobs are due while nodes are drained.

A plan does not simulate CronJobs. In the cluster, the pods of their Jobs take room, and drains
evict these pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.objects import CronJob
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import CRON_JOB
from fairlead.engine.core.cron_schedule import ScheduleError, missed_times, read_schedule
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.result.tabular_answer import counted
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples


def due_cron_job_notes(
    manifests: Iterable[Manifest], start: Instant, took: DurationNs
) -> Iterator[str]:
    """Yield a note about the CronJobs in `manifests` that are due during the drains.

    The drains begin at `start` and last for the time `took`. Suspended and invalid CronJobs are
    left out, because they start no Jobs.
    """
    due = []
    for one in samples(manifests):
        if one.kind is CRON_JOB:
            with suppress(DecodeError, ScheduleError):
                spec = decode_as(CronJob, one.value).spec
                schedule = read_schedule(spec.schedule, spec.time_zone)
                times = 0 if spec.suspend else missed_times(schedule, start, start + took)
                if times:
                    due.append((times, one.ref.key))
    if due:
        due.sort(key=lambda one: (-one[0], one[1]))
        names = listed([f"{key} {counted(times, 'time')}" for times, key in due])
        is_one = len(due) == 1
        what = f"{counted(len(due), 'CronJob')} {'is' if is_one else 'are'} due ({names})"
        yield f"During the drains, {what}; {'its' if is_one else 'their'} Jobs are not simulated."
