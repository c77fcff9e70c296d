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
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.core.reporter import PodPreempting, Record
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.explain.group import batch_state, explained_config
from fairlead.whatif.explain.queue import missing_queue_sentences
from fairlead.whatif.snapshot.snapshot import Snapshot

_EXPLAINED_MAX: Final = 200
_STARTS: Final = "its group starts with the next session"
_EVICTS: Final = "the next session evicts pods for its group"
_RUNS: Final = "its group has its minimum of members without it"


class GroupCauses(Struct, frozen=True):
    """Why groups wait.

    `by_pod` maps the key (`namespace/name`) of each pod in a waiting group to the reason. If there
    are too many groups, some are not examined, and their pods are left out. `missing_queues` are
    sentences about the queues that do not exist.
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
    found = {
        job.id: _why(job, known.get(job.id), has_queue=job.queue in queues.infos)
        for job in composition.jobs.jobs.values()
    }
    groups = {task.key: task.job.id for task in composition.jobs.tasks.values()}
    session = _NextSession(groups)
    run_session(composition, cluster, TieBreak(0), now, reporter=session)
    found |= dict.fromkeys(session.groups_with_victims, _EVICTS)
    return GroupCauses(
        {pod: why for pod, group in groups.items() if (why := found[group])},
        tuple(missing_queue_sentences(queues)),
    )


class _NextSession:
    """The Reporter of a session: collects the groups for which it evicts pods."""

    def __init__(self, groups: Mapping[str, str]) -> None:
        """`groups` are the ids of the groups, by pod."""
        self._groups = groups
        self.groups_with_victims: list[str] = []

    def report(self, record: Record) -> None:
        match record:
            case PodPreempting() if (group := self._groups.get(record.pod.key)) is not None:
                self.groups_with_victims.append(group)
            case _:
                pass


def _why(job: JobInfo, found: GroupExplanation | None, *, has_queue: bool) -> str:
    """Return why the pending pods of `job` wait; "" if `job` was not examined.

    `found` is the explanation of `job`, if it was examined. `has_queue` says whether the queue of
    `job` exists.
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
