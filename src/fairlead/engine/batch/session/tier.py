"""Tiers: combines the results of all plugins.

    order functions       tiers in order, plugins in order: the first plugin that distinguishes the
                          two items decides; ties are broken by creation time, then by name
                          (queues) or id (jobs and tasks)
    JobReady, JobPipelined, JobEnqueueable, Allocatable, Preemptive
                          all plugins must agree
    Overused              one plugin is enough
    JobValid, Explains    the first plugin that objects or explains decides
    Preemptable, Reclaimable
                          the plugins of a tier vote for victims (`actions.eviction_search`)

upstream: pkg/scheduler/framework/session_plugins.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.session.plugin import (
    Allocatable,
    BatchPlugin,
    Explains,
    JobEnqueueable,
    JobEnqueued,
    JobOrder,
    JobPipelined,
    JobReady,
    JobValid,
    Overused,
    Preemptable,
    Preemptive,
    QueueLimits,
    QueueOrder,
    Reclaimable,
    TaskOrder,
    Unschedulable,
)
from fairlead.engine.state.shape import Amounts

JOB_ORDER: Final = "enableJobOrder"
JOB_READY: Final = "enableJobReady"
JOB_PIPELINED: Final = "enableJobPipelined"
TASK_ORDER: Final = "enableTaskOrder"
PREEMPTABLE: Final = "enablePreemptable"
RECLAIMABLE: Final = "enableReclaimable"
QUEUE_ORDER: Final = "enableQueueOrder"
PREDICATE: Final = "enablePredicate"
NODE_ORDER: Final = "enableNodeOrder"
# The names of Volcano's switches. The first two really begin with "enabled".
OVERUSED: Final = "enabledOverused"
ALLOCATABLE: Final = "enabledAllocatable"
PREEMPTIVE: Final = "enablePreemptive"
JOB_ENQUEUED: Final = "enableJobEnqueued"
# Volcano's switches for functions that no plugin here implements.
WITHOUT_EFFECT: Final = (
    "enableBestNode",
    "enableHierarchy",
    "enableJobStarving",
    "enableNamespaceOrder",
    "enableReservedNodes",
    "enableTargetJob",
    "enabledVictim",
)
SWITCHES: Final = (
    JOB_ORDER,
    JOB_READY,
    JOB_PIPELINED,
    TASK_ORDER,
    PREEMPTABLE,
    RECLAIMABLE,
    QUEUE_ORDER,
    PREDICATE,
    NODE_ORDER,
    OVERUSED,
    ALLOCATABLE,
    PREEMPTIVE,
    JOB_ENQUEUED,
    *WITHOUT_EFFECT,
)


class PluginOption(Struct, frozen=True):
    """One plugin of a tier; `off` contains the switches (`enableJobOrder`, …) that are false."""

    name: str
    off: frozenset[str] = frozenset()
    arguments: Mapping[str, str] = field(default_factory=dict)

    def allows(self, switch: str) -> bool:
        """Return whether `switch` is on for the plugin."""
        return switch not in self.off


Tier = tuple[PluginOption, ...]
Voters = tuple[tuple[Any, ...], ...]


class Tiers:
    """The plugins of a configuration, grouped by the functions they implement."""

    def __init__(self, tiers: Sequence[Tier], plugins: Mapping[str, BatchPlugin]) -> None:
        self.plugins = [plugins[option.name] for tier in tiers for option in tier]
        self._tiers = tiers
        self._by_name = plugins
        self._job_order: list[JobOrder] = self._flat(JobOrder, JOB_ORDER)
        self._queue_order: list[QueueOrder] = self._flat(QueueOrder, QUEUE_ORDER)
        self._task_order: list[TaskOrder] = self._flat(TaskOrder, TASK_ORDER)
        self._ready: list[JobReady] = self._flat(JobReady, JOB_READY)
        self._pipelined: list[JobPipelined] = self._flat(JobPipelined, JOB_PIPELINED)
        self._valid: list[JobValid] = self._flat(JobValid, None)
        self._overused: list[Overused] = self._flat(Overused, OVERUSED)
        self._allocatable: list[Allocatable] = self._flat(Allocatable, ALLOCATABLE)
        self._limits: list[QueueLimits] = self._flat(QueueLimits, ALLOCATABLE)
        self._preemptive: list[Preemptive] = self._flat(Preemptive, PREEMPTIVE)
        self._enqueueable: list[JobEnqueueable] = self._flat(JobEnqueueable, JOB_ENQUEUED)
        self._enqueued: list[JobEnqueued] = self._flat(JobEnqueued, JOB_ENQUEUED)
        self._explaining: list[Explains] = self._flat(Explains, None)
        self.preempt_voters = self._voters(Preemptable, PREEMPTABLE)
        self.reclaim_voters = self._voters(Reclaimable, RECLAIMABLE)

    def _flat(self, kind: type[Any], switch: str | None) -> list[Any]:
        return [plugin for tier in self._voters(kind, switch) for plugin in tier]

    def _voters(self, kind: type[Any], switch: str | None) -> Voters:
        return tuple(
            tuple(
                self._by_name[option.name]
                for option in tier
                if isinstance(self._by_name[option.name], kind)
                and (switch is None or option.allows(switch))
            )
            for tier in self._tiers
        )

    # --- order keys, smallest first --------------------------------------------------------

    def job_key(self, job: JobInfo) -> tuple[object, ...]:
        """Return the sort key of a job in its queue; the key may change during the session."""
        return (*[plugin.job_order(job) for plugin in self._job_order], job.created, job.id)

    def queue_key(self, queue: QueueInfo) -> tuple[object, ...]:
        """Return the sort key of a queue; the key may change during the session."""
        return (*[plugin.queue_order(queue) for plugin in self._queue_order], *queue.order)

    def task_key(self, task: TaskInfo) -> tuple[object, ...]:
        """Return the sort key of a task in its job; the key does not change."""
        return (*[plugin.task_order(task) for plugin in self._task_order], task.created, task.id)

    # --- queries ---------------------------------------------------------------------------

    def is_ready(self, job: JobInfo) -> bool:
        """Return whether the job's tasks may be bound."""
        return all(plugin.job_ready(job) for plugin in self._ready)

    def is_pipelined(self, job: JobInfo) -> bool:
        """Return whether the job will be ready once terminating pods free their resources."""
        return all(plugin.job_pipelined(job) for plugin in self._pipelined)

    def objection(self, job: JobInfo) -> Unschedulable | None:
        """Return the reason of the first plugin that excludes `job`, or None if none does."""
        for plugin in self._valid:
            found = plugin.job_valid(job)
            if found is not None:
                return found
        return None

    def unschedulable(self, job: JobInfo, fit_error: str) -> Unschedulable | None:
        """Return the condition of a job that was not scheduled, or None if no plugin returns one.

        `fit_error` is the reason why tasks of the job were not placed.
        """
        for plugin in self._explaining:
            found = plugin.unschedulable(job, fit_error)
            if found is not None:
                return found
        return None

    def is_overused(self, queue: QueueInfo) -> bool:
        """Return whether any plugin decides that the queue must not get more resources."""
        return any(plugin.overused(queue) for plugin in self._overused)

    def may_take(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether the queue stays within its limits if `task` is placed."""
        return all(plugin.allocatable(queue, task) for plugin in self._allocatable)

    def exceeded_limits(
        self, queue: str, requested: Amounts, changes: Mapping[str, Amounts]
    ) -> list[str]:
        """Return the queues that would exceed a limit if `queue` also held `requested`.

        The limits of all plugins are checked. `QueueLimits` explains `changes`.
        """
        found = (plugin.exceeded_limits(queue, requested, changes) for plugin in self._limits)
        return list(dict.fromkeys(name for names in found for name in names))

    def may_reclaim(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether tasks of other queues may be evicted for `task`."""
        return all(plugin.preemptive(queue, task) for plugin in self._preemptive)

    def may_enqueue(self, job: JobInfo) -> bool:
        """Return whether the job's group may be admitted."""
        return all(plugin.job_enqueueable(job) for plugin in self._enqueueable)

    def enqueued(self, job: JobInfo) -> None:
        """Notify the plugins that `job` was admitted."""
        for plugin in self._enqueued:
            plugin.job_enqueued(job)


def without_gang_protection(voters: Voters) -> Voters:
    """Return `voters` without the plugins whose attribute `protects_gangs` is True.

    The removed plugins prevent evictions that would leave a gang with too few members. The result
    is used when a gang is evicted as a whole.
    """
    return tuple(
        tuple(plugin for plugin in tier if not getattr(plugin, "protects_gangs", False))
        for tier in voters
    )
