"""why_no_eviction: says why the actions reclaim and preempt evict no pods for a waiting job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from fairlead.engine.batch.actions.eviction_search import (
    PREEMPTION,
    RECLAIM,
    EvictionKind,
    vote,
)
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.tier import without_gang_protection

# Why a plugin allows no candidate to be evicted, by the plugin's name.
_WHY: Final = {
    "gang": "their gangs would fall below their minimum",
    "proportion": "every other queue would fall below its share if it lost a pod",
    "conformance": "they are system pods",
    "priority": "no job in its queue has a lower priority",
    "drf": "no job in its queue has a larger dominant share",
}

# Why a plugin does not allow the eviction of any whole gang, although it allows the eviction of
# some members.
_WHY_NO_GANG: Final = {
    "proportion": "every other queue would fall below its share if it lost a whole gang",
    "conformance": "each of these gangs has a system pod",
    "drf": "each of these gangs would then have a smaller dominant share than the group",
}


def why_no_eviction(session: Session, job: JobInfo) -> Iterator[str]:
    """Yield why reclaim and preempt evict no pods for `job`: at most one sentence for each action.

    Call this function after the actions of `session` have run. The sentence about reclaim is left
    out if no pods of other queues are running. The sentence about preempt is left out if no pods of
    other jobs in the queue of `job` are running. If preempt is not configured, only jobs with a
    lower priority than `job` count as other jobs.

    There are no sentences if all pending tasks of `job` request nothing. If the defect
    `tier-first-wins` is reproduced, there are no sentences at all, because the reasons assume that
    every tier counts.
    """
    waiting = job.with_status(TaskStatus.PENDING)
    requesting = (task for task in waiting if not task.request.is_best_effort)
    task = min(requesting, key=session.tiers.task_key, default=None)
    if task is None or session.defects.has(Defect.TIER_FIRST_WINS):
        return
    others = [one for one in session.jobs.values() if one is not job]
    foreign = _running(one for one in others if one.queue != job.queue)
    if foreign and (why := _why_no_reclaim(session, task, foreign)):
        yield f"The action reclaim evicts no pods of other queues for it: {why}."
    own = _running(one for one in others if one.queue == job.queue)
    if PREEMPTION.why not in session.policy.actions:
        # With the plugin priority, preempt would evict no pods of jobs with an equal or higher
        # priority.
        own = [one for one in own if one.job.priority < job.priority]
    if own and (why := _why_no_victims(session, PREEMPTION, task, own)):
        yield f"The action preempt evicts no pods of its queue for it: {why}."


def _running(jobs: Iterable[JobInfo]) -> list[TaskInfo]:
    return [task for job in jobs for task in job.by_status[TaskStatus.RUNNING].values()]


def _why_no_reclaim(session: Session, task: TaskInfo, foreign: Sequence[TaskInfo]) -> str:
    queue = session.queues[task.job.queue]
    if session.tiers.is_overused(queue) or not session.tiers.may_reclaim(queue, task):
        return "its queue is not below its share of all resources that its pods request"
    if not session.tiers.may_take(queue, task):
        return "its queue would exceed its limits"
    reclaimable = [one for one in foreign if session.queues[one.job.queue].reclaimable]
    if not reclaimable:
        return "the other queues are not reclaimable"
    return _why_no_victims(session, RECLAIM, task, reclaimable)


def _why_no_victims(
    session: Session, kind: EvictionKind, task: TaskInfo, candidates: Sequence[TaskInfo]
) -> str:
    """Return why no tasks of `candidates` are evicted for `task`; `candidates` is not empty."""
    if kind.why not in session.policy.actions:
        return "the configuration does not have this action"
    voters = kind.voters(session.tiers)
    if session.rules.takes_whole_gangs:
        voters = without_gang_protection(voters)
    plugins: list[Any] = [plugin for tier in voters for plugin in tier]
    if not plugins:
        return "no plugin of the configuration chooses victims"
    for plugin in plugins:
        if not kind.allowed_by(plugin, task, candidates):
            because = _WHY.get(plugin.name, "a plugin allows no eviction")
            return f"{because} (plugin {plugin.name})"
    if session.rules.takes_whole_gangs and (why := _why_no_gang(session, kind, task, candidates)):
        return f"a gang is evicted as a whole or not at all, and {why}"
    return "those that it may evict do not make enough room for the whole group"


def _why_no_gang(
    session: Session, kind: EvictionKind, task: TaskInfo, candidates: Sequence[TaskInfo]
) -> str:
    """Return why no gang of `candidates` may be evicted as a whole for `task`.

    Returns "" if a gang may be evicted.

    Also returns "" if single members may be evicted, because their gangs have more members than
    they need.
    """
    voters = kind.voters(session.tiers)
    if vote(voters, lambda plugin: kind.allowed_by(plugin, task, candidates), session.defects):
        return ""
    gangs: dict[str, list[TaskInfo]] = {}
    for one in candidates:
        gangs.setdefault(one.job.id, []).append(one)
    for plugin in (plugin for tier in without_gang_protection(voters) for plugin in tier):
        allowed = (len(kind.allowed_by(plugin, task, gang)) == len(gang) for gang in gangs.values())
        if not any(allowed):
            because = _WHY_NO_GANG.get(plugin.name, "a plugin allows the eviction of no whole gang")
            return f"{because} (plugin {plugin.name})"
    return ""
