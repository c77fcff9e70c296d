"""Closing a session: job statuses, pod conditions and events.

The session sets parts of the status of each job's group: the phase and the numbers of running,
succeeded and failed members. If the job is unschedulable, the session also sets a condition with
the reason. A task that was not placed gets the condition PodScheduled=False. There are events about
the group and about the tasks that were not placed. The phase is

    Unknown    if this session found the job unschedulable and a member runs
    Completed  in Volcano's API, if no member has a node, and at least the minimum number of members
               have ended (a group with the minimum 0 needs no member that has ended)
    Running    if at least the minimum number of members have a node; in Volcano's API, members that
               have ended count too
    Inqueue    if the group was admitted (only if the action enqueue runs)
    Pending    otherwise

A group of scheduling.k8s.io has the condition PodGroupScheduled instead of a phase.

upstream: framework/session.go: jobStatus; plugins/gang/gang.go: OnSessionClose;
cache/cache.go: RecordJobStatusEvent
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.api.objects import PodGroupCondition
from fairlead.api.pods.facts import condition
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.group import UPSTREAM_API, VOLCANO_API
from fairlead.engine.batch.info.job import INQUEUE, JobInfo, TaskInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.plugin import Unschedulable
from fairlead.engine.batch.session.session import Session
from fairlead.engine.core.command import Command, Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.reporter import PodUnschedulable

UNSCHEDULABLE: Final = "Unschedulable"
NO_NODES: Final = "0 nodes are available"
GROUP_SCHEDULED: Final = "PodGroupScheduled"
_POD_SCHEDULED: Final = "PodScheduled"
_SHOWN_CONDITIONS: Final = ("type", "status", "reason", "message")


class JobReport(Struct, frozen=True):
    """The result of a session for one job.

    `conditions` are all conditions of the group. `condition` is the condition that this session
    sets, None if the job is schedulable. `waiting` are the tasks that are pending, or allocated but
    not dispatched.
    """

    job: JobInfo
    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[PodGroupCondition, ...]
    condition: Unschedulable | None
    fit_error: str
    waiting: tuple[TaskInfo, ...]


def report_on(session: Session, job: JobInfo) -> JobReport:
    """Return the state of `job` at the end of the session.

    This function must be called before `Session.revert_undispatched`.
    """
    assert job.group is not None
    text = fit_error_of(session, job)
    found = session.objections.get(job.id) or session.tiers.unschedulable(job, text)
    counts = [len(job.by_status[s]) for s in (TaskStatus.RUNNING, TaskStatus.SUCCEEDED)]
    return JobReport(
        job=job,
        phase=_phase(session, job, found),
        running=counts[0],
        succeeded=counts[1],
        failed=len(job.by_status[TaskStatus.FAILED]),
        conditions=_conditions(job, found),
        condition=found,
        fit_error=text,
        waiting=(
            *job.with_status(TaskStatus.ALLOCATED),
            *job.with_status(TaskStatus.PENDING),
        ),
    )


def fit_error_of(session: Session, job: JobInfo) -> str:
    """Return the reason why tasks of `job` were not placed.

    A pipelined task has a node, but waits there for resources that are being released. If the last
    task that the action `allocate` tried was pipelined, the reason lists the resources that the
    task lacks on its node. Otherwise the reason is the last failure that the session recorded for
    the job. If the session recorded no failure, the result is the reason why the session did not
    try the job. If there is none of these reasons, the result is "0 nodes are available".

    If kube-batch's defect `mute-fit-error` is reproduced, the reason why the session did not try
    the job is left out.
    """
    lacking = session.shortfalls.get(job.id)
    if lacking is not None:
        reasons = sorted(f"1 insufficient {name}" for name in lacking)
        return f"0/1 nodes are available, {', '.join(reasons)}."
    found = session.failures.get(job.id)
    if found is None and not session.defects.has(Defect.MUTE_FIT_ERROR):
        found = _not_tried(session, job)
    return found or NO_NODES


def _not_tried(session: Session, job: JobInfo) -> str | None:
    """Return the reason why the session searched no nodes for `job`; None if no reason is known."""
    queue = session.queues[job.queue]
    if job.id in session.outside:
        return "the cluster has no room for the minimum of the group"
    if job.id in session.objections:
        return session.objections[job.id].message
    if not queue.is_open:
        return f"queue {queue.name} is closed"
    if job.by_status[TaskStatus.PENDING] and session.tiers.is_overused(queue):
        return f"queue {queue.name} already has the share that it deserves"
    return None


def _phase(session: Session, job: JobInfo, found: Unschedulable | None) -> str:
    """Return the phase of the group of `job`; the module docstring lists the phases.

    upstream: volcano: pkg/scheduler/framework/session.go: jobStatus
    """
    if found is not None and job.by_status[TaskStatus.RUNNING]:
        return "Unknown"
    assert job.group is not None
    ended, of_volcano = 0, job.group.api_group == VOLCANO_API
    if of_volcano:
        ended = len(job.by_status[TaskStatus.SUCCEEDED]) + len(job.by_status[TaskStatus.FAILED])
    if job.allocated_count + ended >= job.min_available:
        return "Completed" if of_volcano and not job.allocated_count else "Running"
    return INQUEUE if session.admits_groups and job.id not in session.outside else "Pending"


def _conditions(job: JobInfo, found: Unschedulable | None) -> tuple[PodGroupCondition, ...]:
    """Return the group's conditions.

    If `found` is set, the result contains it as the condition Unschedulable. An earlier condition
    Unschedulable is replaced.
    """
    assert job.group is not None
    before = job.group.status.conditions
    if found is None:
        return before
    new = PodGroupCondition(
        type=UNSCHEDULABLE, status="True", reason=found.reason, message=found.message
    )
    if all(one.type != UNSCHEDULABLE for one in before):
        return (*before, new)
    return tuple(new if one.type == UNSCHEDULABLE else one for one in before)


# --- commands ------------------------------------------------------------------------------


def closing_commands(session: Session, report: JobReport) -> list[Command]:
    """Return the commands for one job: writes of changed statuses, and events."""
    commands: list[Command] = []
    group = report.job.group
    if group is not None and group.ref is not None:
        commands += _group_commands(session, report, group.ref)
    for task in report.waiting:
        commands += _task_commands(session, task, report.fit_error)
    return commands


def _group_commands(session: Session, report: JobReport, ref: ObjectRef) -> Iterator[Command]:
    assert report.job.group is not None
    of_upstream = report.job.group.api_group == UPSTREAM_API
    fields, conditions = ({}, _as_upstream(report)) if of_upstream else _changes(session, report)
    if fields or conditions:
        yield PatchStatus(ref, fields=fields, conditions=conditions)
    quiet = not session.defects.has(Defect.MUTE_FIT_ERROR) and not conditions
    if report.phase not in ("Running", "Completed") and not quiet:
        component = session.job_table.component_of(report.job)
        yield _event(ref, UNSCHEDULABLE, group_note(report), component)


def group_note(report: JobReport) -> str:
    """Return the text of the event for a group."""
    pending = len(report.job.by_status[TaskStatus.PENDING])
    total = len(report.job.tasks)
    return f"{pending}/{total} tasks in gang unschedulable: {report.fit_error}"


def _changes(session: Session, report: JobReport) -> tuple[dict[str, Any], tuple[Condition, ...]]:
    """Return the changed fields of the group's status, and the changed conditions."""
    assert report.job.group is not None
    before = report.job.group.status
    wanted = {
        "phase": report.phase,
        "running": report.running,
        "succeeded": report.succeeded,
        "failed": report.failed,
    }
    fields = {name: value for name, value in wanted.items() if getattr(before, name) != value}
    found = report.condition
    if found is None:
        return fields, _resolved_conditions(session, before.conditions)
    new = Condition(UNSCHEDULABLE, "True", found.reason, found.message)
    known = any(_same(one, new) for one in before.conditions)
    return fields, () if known else (new,)


def _as_upstream(report: JobReport) -> tuple[Condition, ...]:
    """Return the new condition PodGroupScheduled of a group of scheduling.k8s.io.

    Returns () if the condition is unchanged. Once the condition is True, it stays True.

    upstream: staging/src/k8s.io/api/scheduling/v1alpha2/types.go: PodGroupScheduled
    """
    assert report.job.group is not None
    before = next(
        (one for one in report.job.group.status.conditions if one.type == GROUP_SCHEDULED), None
    )
    if before is not None and before.status == "True":
        return ()
    if report.phase == "Running":
        return (Condition(GROUP_SCHEDULED, "True", "Scheduled"),)
    message = group_note(report)
    new = Condition(GROUP_SCHEDULED, "False", UNSCHEDULABLE, message)
    return () if before is not None and _same(before, new) else (new,)


def _resolved_conditions(
    session: Session, before: tuple[PodGroupCondition, ...]
) -> tuple[Condition, ...]:
    """Return the condition Unschedulable=False if `before` contains Unschedulable=True, else ().

    If kube-batch's defect `mute-fit-error` is reproduced, the result is always ().
    """
    if session.defects.has(Defect.MUTE_FIT_ERROR):
        return ()
    return tuple(
        Condition(UNSCHEDULABLE, "False", "Scheduled", "")
        for one in before
        if one.type == UNSCHEDULABLE and one.status == "True"
    )


def _same(before: PodGroupCondition, new: Condition) -> bool:
    return all(getattr(before, name) == getattr(new, name) for name in _SHOWN_CONDITIONS)


def _task_commands(session: Session, task: TaskInfo, text: str) -> Iterator[Command]:
    wanted = Condition(_POD_SCHEDULED, "False", UNSCHEDULABLE, text)
    found = condition(task.info.pod, _POD_SCHEDULED)
    changed = found is None or (found.status, found.reason, found.message) != (
        wanted.status,
        wanted.reason,
        wanted.message,
    )
    if changed:
        session.reporter.report(_record(session, task, text))
        yield PatchStatus(task.ref, conditions=(wanted,))
    if changed or session.defects.has(Defect.MUTE_FIT_ERROR):
        yield _event(task.ref, "FailedScheduling", text, task.info.pod.spec.scheduler_name)


def _record(session: Session, task: TaskInfo, text: str) -> PodUnschedulable:
    return PodUnschedulable(
        pod=task.ref,
        at=session.now,
        message=text,
        plugins=(),
        nominated_node=None,
        is_error=False,
        is_binding=False,
        started=session.now,
        attempt=1,
        profile=task.info.pod.spec.scheduler_name,
        via="batch",
    )


def _event(about: ObjectRef, reason: str, note: str, component: str) -> RecordEvent:
    return RecordEvent(
        regarding=about,
        type="Warning",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=component,
    )
