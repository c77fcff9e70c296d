"""due_cron_job_notes: which CronJobs are due while nodes are drained.

A plan does not simulate CronJobs. In the cluster, the pods of their Jobs take room, and drains
evict these pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.cron_schedule import Schedule
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.snapshot.due_cron_job import due_cron_jobs
from fairlead.whatif.snapshot.manifest import Manifest

_TIMES_MAX: Final = 100  # more times are not counted


def due_cron_job_notes(
    manifests: Iterable[Manifest], start: Instant, took: DurationNs
) -> Iterator[str]:
    """Yield a note about the CronJobs in `manifests` that are due during the drains.

    The drains begin at `start` and last for the time `took`.
    """
    end = start + took
    found = due_cron_jobs(manifests, start, end)
    due = [(_times(schedule, start, end), key) for key, _, schedule in found]
    if due:
        due.sort(key=lambda one: (-one[0], one[1]))
        names = listed([f"{key} {_times_words(times)}" for times, key in due])
        is_one = len(due) == 1
        what = f"{counted(len(due), 'CronJob')} {'is' if is_one else 'are'} due ({names})"
        yield f"During the drains, {what}; {'its' if is_one else 'their'} Jobs are not simulated."


def _times(schedule: Schedule, start: Instant, end: Instant) -> int:
    """Return how often `schedule` is due in (`start`, `end`], at most _TIMES_MAX + 1."""
    count, at = 0, schedule.after(start)
    while at is not None and at <= end and count <= _TIMES_MAX:
        count, at = count + 1, schedule.after(at)
    return count


def _times_words(times: int) -> str:
    return f"over {_TIMES_MAX} times" if times > _TIMES_MAX else counted(times, "time")
