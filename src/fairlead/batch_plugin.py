"""The stable public interface for batch plugins and actions, which import only this module.

docs/batch.md is the guide; docs/python-api.md lists every name. A plugin is a class with a `name`
and with a method for each decision that it influences:

    from fairlead import batch_plugin

    class SmallFirst:
        name = "small-first"

        def job_order(self, job: batch_plugin.JobInfo) -> int:
            return len(job.tasks)
"""

from __future__ import annotations

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.runtime import runtime_of
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.plugins.registry import PluginContext
from fairlead.engine.batch.session.plugin import (
    Allocatable,
    BatchHandle,
    BatchPlugin,
    EventHandler,
    Explains,
    JobEnqueueable,
    JobEnqueued,
    JobOrder,
    JobPipelined,
    JobReady,
    JobValid,
    NodePrioritizers,
    Overused,
    Predicate,
    Preemptable,
    Preemptive,
    QueueOrder,
    Reclaimable,
    TaskOrder,
    Unschedulable,
)
from fairlead.engine.batch.session.session import OnSessionOpen, Session

__all__ = [
    "Action",
    "Allocatable",
    "BatchHandle",
    "BatchPlugin",
    "EventHandler",
    "Explains",
    "JobEnqueueable",
    "JobEnqueued",
    "JobInfo",
    "JobOrder",
    "JobPipelined",
    "JobReady",
    "JobValid",
    "NodePrioritizers",
    "OnSessionOpen",
    "Overused",
    "PluginContext",
    "Predicate",
    "Preemptable",
    "Preemptive",
    "QueueInfo",
    "QueueOrder",
    "Reclaimable",
    "Session",
    "TaskInfo",
    "TaskOrder",
    "TaskStatus",
    "Unschedulable",
    "runtime_of",
]
