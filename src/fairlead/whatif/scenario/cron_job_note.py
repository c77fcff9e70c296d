"""Notes about the CronJobs of a scenario that create no Jobs, or whose Jobs never end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.due_cron_job import due_cron_jobs
from fairlead.whatif.snapshot.manifest import Manifest

_NAMES_MAX: Final = 2


def idle_cron_job_notes(initial: Iterable[Manifest], start: Instant, end: Instant) -> Iterator[str]:
    """Yield a note about the CronJobs in `initial` that are due after `start` and until `end`.

    Call this function only if the scenario does not run CronJobs.
    """
    due = [key for key, *_ in due_cron_jobs(initial, start, end)]
    if due:
        noun, verb = ("CronJob", "creates") if len(due) == 1 else ("CronJobs", "create")
        yield (
            f"{noun} {listed(due, _NAMES_MAX)} {verb} no Jobs here; with settings.cron-jobs: true, "
            f"{'it does' if len(due) == 1 else 'they do'}."
        )


def endless_cron_job_notes(
    initial: Iterable[Manifest], start: Instant, end: Instant
) -> Iterator[str]:
    """Yield a note about the due CronJobs in `initial` whose pods never end in the simulation.

    The function assumes that run times come only from annotations. A CronJob whose Jobs or pods
    have a deadline gets no note, because the deadline ends the pods.
    """
    due = due_cron_jobs(initial, start, end)
    endless = [key for key, job, _ in due if not _ends(job.spec.job_template)]
    if endless:
        noun = "CronJob" if len(endless) == 1 else "CronJobs"
        yield (
            f"The pods of {noun} {listed(endless, _NAMES_MAX)} never end here; the annotation "
            f"{RUN_DURATION} in the pod template states how long they run."
        )


def _ends(job_template: Json) -> bool:
    """Return whether the pods of a Job have an annotated run time or a deadline."""
    job = job_template.get("spec") or {}
    template = job.get("template") or {}
    pod = template.get("spec") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    has_deadline = any(one.get("activeDeadlineSeconds") is not None for one in (job, pod))
    return has_deadline or RUN_DURATION in annotations
