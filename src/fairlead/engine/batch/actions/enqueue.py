"""enqueue: admits Pending groups if the plugins accept their minResources.

A group whose phase is Pending or empty is not scheduled. Admission sets the phase to Inqueue; then
the group's controller creates the pods. A group without minResources is always admitted. The plugin
`overcommit` compares minResources with the resources that are left in the cluster. The plugin
`proportion` compares minResources with the unused part of the limits of the queue and its
ancestors.

upstream: volcano: pkg/scheduler/actions/enqueue/enqueue.go
"""

from __future__ import annotations

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.session.priority_queue import PriorityQueue
from fairlead.engine.batch.session.session import Session


class Enqueue:
    """The action `enqueue`: admits Pending groups."""

    name = "enqueue"

    def execute(self, session: Session) -> None:
        """Try to admit the jobs of each queue, in queue order and job order.

        A rejected job does not block later jobs.
        """
        queues: PriorityQueue[QueueInfo] = PriorityQueue(session.tiers.queue_key)
        jobs: dict[str, PriorityQueue[JobInfo]] = {}
        for job in session.outside.values():
            if job.queue not in jobs:
                jobs[job.queue] = PriorityQueue(session.tiers.job_key)
                queues.push(session.queues[job.queue])
            jobs[job.queue].push(job)
        while queues:
            queue = queues.pop()
            job = jobs[queue.name].pop()
            if not _has_min_resources(job) or session.tiers.may_enqueue(job):
                session.enqueue(job)
            if jobs[queue.name]:
                queues.push(queue)


def _has_min_resources(job: JobInfo) -> bool:
    return job.group is not None and job.group.min_resources is not None
