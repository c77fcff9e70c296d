"""Finds out why the groups of kube-batch and Volcano wait, for the table of all pending pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.engine.batch.explanation.explanation import (
    GroupExplanation,
    Obstacle,
    batch_overview,
)
from fairlead.engine.batch.explanation.queue import all_queues
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.plugin_guard import PluginFailures
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.explain.group import batch_state, explained_config
from fairlead.whatif.explain.queue import missing_queue_sentences
from fairlead.whatif.snapshot.snapshot import Snapshot

_EXPLAINED_MAX: Final = 200
_STARTS: Final = "its group starts with the next session"
_RUNS: Final = "its group has its minimum of members without it"


class GroupCauses(Struct, frozen=True):
    """Why groups wait.

    `by_pod` maps the pods (namespace/name) of waiting groups to the reason. It lacks the pods of
    groups that were not examined because there are too many. `missing_queues` are sentences about
    the queues that do not exist.
    """

    by_pod: Mapping[str, str]
    missing_queues: tuple[str, ...]


def group_causes(
    snapshot: Snapshot, scheduler: SchedulerConfig, options: BatchOptions
) -> GroupCauses:
    """Return why the groups of the batch scheduler in `snapshot` wait.

    `scheduler` and `options` configure the scheduler and the batch scheduler.
    """
    config = explained_config(options, scheduler, snapshot)
    cluster, composition = batch_state(snapshot, config, PluginFailures())
    now = snapshot.taken_at
    overview = batch_overview(composition, cluster, now, _EXPLAINED_MAX)
    queues = all_queues(composition, cluster, now)
    known = {one.group: one for one in overview.waiting}
    jobs = composition.jobs.jobs.values()
    return GroupCauses(
        {
            task.key: why
            for job in jobs
            if (why := _why(job, known.get(job.id), has_queue=job.queue in queues.infos))
            for task in job.tasks.values()
        },
        tuple(missing_queue_sentences(queues)),
    )


def _why(job: JobInfo, found: GroupExplanation | None, *, has_queue: bool) -> str:
    """Return why the pending pods of `job` wait; "" if it was not examined.

    `found` is the explanation of `job`, if it was examined.
    """
    if job.group is None:
        return "its PodGroup does not exist"
    if not has_queue:
        return f"its queue {job.queue} does not exist"
    if job.is_ready:
        return _RUNS
    if found is None:
        return ""
    if found.obstacle is Obstacle.NEXT_SESSION:
        return _STARTS
    return f"its group waits ({found.obstacle})"
