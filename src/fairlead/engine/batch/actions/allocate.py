"""allocate: places pending tasks on idle resources, or pipelines them onto releasing resources.

    while any queue is below its share:
        take the first queue, its first job, and the tasks of this job in order
        place each task on the best node
        if a task fits on no node, skip it (Fairlead's rules) or end the job's turn (kube-batch's)
        if the job has become ready, bind it; in each later turn, place one more of its tasks
        if the job cannot start, undo its placements (`_commit_or_discard`)

upstream: pkg/scheduler/actions/allocate/allocate.go
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.priority_queue import ItemQueue, PriorityQueue, UnsortedQueue
from fairlead.engine.batch.session.reservation import would_preempt
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import ImmediateOperations, Statement, TaskOperations

Tasks = deque[TaskInfo]


class _WaitingJobs(Struct):
    """The queues, the jobs of each queue, and the remaining tasks of jobs that have had a turn."""

    queues: ItemQueue[QueueInfo]
    jobs: dict[str, PriorityQueue[JobInfo]] = field(default_factory=dict)
    tasks: dict[str, Tasks] = field(default_factory=dict)


class Allocate:
    """The action `allocate`: places pending tasks on resources that are idle or being released."""

    name = "allocate"

    def execute(self, session: Session) -> None:
        """Place tasks until no queue has a job left that could get resources."""
        waiting = _waiting_jobs(session)
        while waiting.queues:
            queue = waiting.queues.pop()
            if session.tiers.is_overused(queue):
                continue
            jobs = waiting.jobs[queue.name]
            if not jobs:
                continue
            job = jobs.pop()
            if job.id not in waiting.tasks:
                waiting.tasks[job.id] = _pending_tasks(session, job)
            if _serve_job(session, job, waiting.tasks[job.id]):
                jobs.push(job)
            waiting.queues.push(queue)


def place_in_freed_room(session: Session) -> None:
    """Place the jobs for which earlier sessions evicted pods, before other jobs take the resources.

    The tasks of such a job are placed on resources that are idle or still being released. A job
    gets no precedence if its queue is overused, or if the first waiting job of the queue would
    preempt the job. This function first ends the reservation that the last session made.
    """
    session.room.reserve(None)
    if not any(job.victims for job in session.jobs.values()):
        return
    tiers, queues = session.tiers, session.queues
    waiting = [job for job in session.candidates() if job.by_status[TaskStatus.PENDING]]
    waiting.sort(key=lambda job: (tiers.queue_key(queues[job.queue]), tiers.job_key(job)))
    first: dict[str, JobInfo] = {}
    for job in waiting:
        first.setdefault(job.queue, job)
    for job in waiting:
        is_overused = tiers.is_overused(queues[job.queue])
        if job.victims and not is_overused and not would_preempt(session, first[job.queue], job):
            _serve_job(session, job, _pending_tasks(session, job))


def _waiting_jobs(session: Session) -> _WaitingJobs:
    """Return the queues and jobs that could get resources."""
    tiers = session.tiers
    stale = session.defects.has(Defect.QUEUE_DUP_HEAP)
    queues: ItemQueue[QueueInfo] = (PriorityQueue if stale else UnsortedQueue)(tiers.queue_key)
    waiting = _WaitingJobs(queues)
    for job in session.candidates():
        queue = session.queues[job.queue]
        if stale or job.queue not in waiting.jobs:
            waiting.queues.push(queue)
        jobs = waiting.jobs.setdefault(job.queue, PriorityQueue(tiers.job_key))
        jobs.push(job)
    return waiting


def _pending_tasks(session: Session, job: JobInfo) -> Tasks:
    """Return the pending tasks of `job` that request resources, in task order."""
    if session.defects.has(Defect.INIT_ONLY):
        pending = (t for t in job.with_status(TaskStatus.PENDING) if not t.request.runs_on_nothing)
    else:
        pending = (t for t in job.with_status(TaskStatus.PENDING) if not t.request.is_best_effort)
    return deque(sorted(pending, key=session.tiers.task_key))


def _serve_job(session: Session, job: JobInfo, tasks: Tasks) -> bool:
    """Give `job` one turn; return whether `job` gets another turn."""
    final = session.defects.has(Defect.PARTIAL_HOLD)
    statement: TaskOperations = ImmediateOperations(session) if final else Statement(session)
    while True:
        placed, passed_over = _place_tasks(session, statement, job, tasks)
        if not placed or not passed_over or session.tiers.is_ready(job):
            break
        # Try the skipped tasks again: they may have affinity to a member that was placed later.
        tasks.extend(passed_over)
    has_more_tasks = placed and bool(tasks)
    _commit_or_discard(session, statement, job)
    return has_more_tasks


def _place_tasks(
    session: Session, statement: TaskOperations, job: JobInfo, tasks: Tasks
) -> tuple[bool, list[TaskInfo]]:
    """Place `tasks` in order until `job` is ready or no task is left.

    Returns whether a task was placed, and the skipped tasks. Under Fairlead's rules, a task that
    fits on no node is skipped. Under kube-batch's rules, such a task ends the turn of the job, and
    the job gets no further turn. When a task ends the turn, the result is (False, []), even if
    earlier tasks were placed.
    """
    placed, passed_over, unplaceable = False, list[TaskInfo](), set[int]()
    while tasks:
        task = tasks.popleft()
        session.shortfalls.pop(job.id, None)
        if task.info.shape.id in unplaceable or not _place(session, statement, task):
            if not session.rules.tries_every_task:
                return False, []
            unplaceable.add(task.info.shape.id)
            passed_over.append(task)
            continue
        placed = True
        if session.tiers.is_ready(job):
            break
    return placed, passed_over


def _place(session: Session, statement: TaskOperations, task: TaskInfo) -> bool:
    if not session.may_take(task):
        session.note_over_limit(task)
        return False
    if session.defects.has(Defect.PIPELINE_OVER_IDLE):
        return _place_on_best(session, statement, task)
    node = session.choices(task.job).now.pick(task.info, session.tie_break)
    if node is not None:
        statement.allocate(task, node)
        return True
    return _pipeline(session, statement, task)


def _pipeline(session: Session, statement: TaskOperations, task: TaskInfo) -> bool:
    """Pipeline `task` onto the best node whose idle and releasing resources together suffice.

    Returns whether there is such a node. If kube-batch's defect `evict-ignores-idle` is reproduced,
    the releasing resources alone must suffice.
    """
    node = None
    if session.room.is_anything_releasing():
        node = session.choices(task.job).later.pick(task.info, session.tie_break)
    if node is None:
        session.note_failure(task)
        return False
    session.note_shortfall(task, node)
    statement.pipeline(task, node)
    return True


def _place_on_best(session: Session, statement: TaskOperations, task: TaskInfo) -> bool:
    """Allocate or pipeline `task` on the best node with enough resources for it now or later.

    "Later" means after terminating pods have released their resources. Returns False if there is no
    such node. Used only if kube-batch's defect `pipeline-over-idle` is reproduced.
    """
    node = session.choices(task.job).either.pick(task.info, session.tie_break)
    if node is None:
        session.note_failure(task)
        return False
    if session.view(task.job).fits_now(task.request, node.row):
        statement.allocate(task, node)
    else:
        session.note_shortfall(task, node)
        statement.pipeline(task, node)
    return True


def _commit_or_discard(session: Session, statement: TaskOperations, job: JobInfo) -> None:
    """Commit or discard `statement`, or leave its placements uncommitted until the session ends.

    - If `job` is ready, `statement` is committed.
    - If `job` is pipelined, its placements stay uncommitted. The placements also stay uncommitted
      if `job` lacks only best-effort members and the action `backfill` is configured.
    - Otherwise `statement` is discarded.
    """
    if session.tiers.is_ready(job):
        statement.commit()
        return
    if session.tiers.is_pipelined(job):
        return
    best_effort = sum(t.request.is_best_effort for t in job.with_status(TaskStatus.PENDING))
    lacking = job.min_available - job.ready_count - job.waiting_count
    if lacking > best_effort or not session.runs_backfill:
        statement.discard()
