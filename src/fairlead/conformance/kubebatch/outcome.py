"""Runs a session of Fairlead and returns its outcome in the form of the recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.kubebatch.scenario import configuration, objects
from fairlead.engine.batch.compose import Composition, compose
from fairlead.engine.batch.defect import BatchDefects
from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.task_status import HOLDING_STATUSES, TaskStatus
from fairlead.engine.batch.plugins.drf import Drf
from fairlead.engine.batch.plugins.proportion import Proportion, QueueShare, named_columns
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.batch.session.close_session import JobReport
from fairlead.engine.batch.session.session import Session, SessionStep
from fairlead.engine.core.command import Command, PatchStatus, RecordEvent
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.resource_columns import CPU, MEMORY

# The steps about tasks that the recorded trace contains.
_TRACED: Final = ("allocate", "pipeline", "release", "unevict", "unpipeline", "evict")
_MILLI: Final = 1000
# Decimal places in the recordings: bytes of memory have none, and milli-units of other resources
# have three.
_PLACES: Final = {"memory": 0}


class _Recorder:
    """Observes a session; collects its trace, bindings, evictions and outcome."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.binds: dict[str, str] = {}
        self.evictions: list[Json] = []
        self.outcome: Json = {}
        self._released: list[TaskInfo] = []

    def opened(self, session: Session) -> None:
        self.outcome["queuesOpen"] = _queues(session, ())
        self.outcome["jobsOpen"] = _jobs(session)

    def note(self, step: SessionStep) -> None:
        if step.task is None:
            self.trace.append(f"{step.verb} {step.detail}")
        elif step.verb in _TRACED:
            self.trace.append(f"{step.verb} {step.task.key} {step.detail}")
        if step.task is not None:
            self._note_task(step.verb, step.task, step.detail)

    def _note_task(self, verb: str, task: TaskInfo, detail: str) -> None:
        match verb:
            case "bind":
                self.binds[task.key] = detail
            case "evict":
                self.evictions.append({"task": task.key, "reason": detail})
            case "release":
                self._released.append(task)
            case _:
                pass

    def closing(self, session: Session) -> None:
        self.outcome |= {
            "queuesClose": _queues(session, self._released),
            "jobsClose": _jobs(session),
            "pipelined": _on_node(session, TaskStatus.PIPELINED),
            "allocatedNotBound": _on_node(session, TaskStatus.ALLOCATED),
        }


def _on_node(session: Session, status: TaskStatus) -> dict[str, str]:
    return {t.key: t.node for job in session.jobs.values() for t in job.with_status(status)}


def _queues(session: Session, released: Sequence[TaskInfo]) -> Json:
    """Return the shares of each queue as computed by the plugin named `proportion`.

    The result is empty if the session does not use this plugin. `released` are the tasks whose
    resources the session released. The member `allocated` of a queue always contains cpu and
    memory. `allocated` contains another resource if a task of the queue requests this resource, and
    the task holds resources or is in `released`.
    """
    for plugin in session.tiers.plugins:
        if isinstance(plugin, Proportion):
            return {
                name: _queue(session, plugin, found, released)
                for name, found in plugin.shares.items()
            }
    return {}


def _queue(
    session: Session, plugin: Proportion, found: QueueShare, released: Sequence[TaskInfo]
) -> Json:
    holding = (
        task
        for job in session.jobs.values()
        for status in HOLDING_STATUSES
        for task in job.with_status(status)
    )
    own = [task for task in (*holding, *released) if task.job.queue == found.queue.name]
    allocated = {column: found.allocated_of(column) for column in named_columns(own)}
    return {
        "weight": found.queue.weight,
        "deserved": _amounts(session, found.deserved),
        "allocated": _amounts(session, allocated),
        "request": _amounts(session, found.request),
        "share": _rounded(found.share),
        "overused": plugin.overused(found.queue),
    }


def _amounts(session: Session, amounts: Mapping[int, float]) -> Json:
    """Return amounts by resource name: memory in bytes, other resources in milli-units."""
    names = session.table.resources.names
    found = {
        names[column]: amount if column in (CPU, MEMORY) else amount * _MILLI
        for column, amount in amounts.items()
    }
    return {name: round(amount, _PLACES.get(name, 3)) for name, amount in found.items()}


def _rounded(share: float) -> float:
    """Return a share with the precision of the recordings."""
    return round(share, 6)


def _jobs(session: Session) -> Json:
    drf = next((p for p in session.tiers.plugins if isinstance(p, Drf)), None)
    return {
        job.id: {
            "queue": job.queue,
            "priority": job.priority,
            "ready": job.is_ready,
            "pipelined": job.is_pipelined,
            "drfShare": _rounded(drf.share_of(job)) if drf is not None else 0,
        }
        for job in session.jobs.values()
    }


def _group(report: JobReport) -> Json:
    return {
        "phase": report.phase,
        "running": report.running,
        "succeeded": report.succeeded,
        "failed": report.failed,
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in report.conditions
        ],
    }


def _events(commands: list[Command]) -> list[str]:
    return sorted(
        f"{_kind(c)} {c.regarding.key} {c.type} {c.reason}: {c.note}"
        for c in commands
        if isinstance(c, RecordEvent)
    )


def _kind(event: RecordEvent) -> str:
    """Return the kind of the event's object, without its API group."""
    return event.regarding.kind.partition(".")[0]


def _pod_conditions(commands: list[Command]) -> Json:
    return {
        c.target.key: [f"{one.type}={one.status}:{one.reason}", one.message]
        for c in commands
        if isinstance(c, PatchStatus) and c.target.kind == "Pod"
        for one in c.conditions
    }


def replay(scenario: Json, defects: BatchDefects, seed: int = 0) -> Json:
    """Run a session of Fairlead; return its outcome and trace in the form of the recordings.

    The defects of kube-batch in `defects` are reproduced, and `seed` decides ties.
    """
    cluster = Cluster()
    composition = compose(configuration(scenario, defects), cluster)
    _load(cluster, composition, scenario)
    recorder = _Recorder()
    done = run_session(composition, cluster, TieBreak(seed), 0, observer=recorder)
    groups = {
        r.job.id: _group(r)
        for r in done.reports
        if r.job.group is not None and r.job.group.ref is not None
    }
    return {
        **recorder.outcome,
        "binds": recorder.binds,
        "evictions": sorted(recorder.evictions, key=lambda one: str(one["task"])),
        "podGroups": groups,
        "events": _events(done.commands),
        "podConditions": _pod_conditions(done.commands),
        "trace": recorder.trace,
    }


def _load(cluster: Cluster, composition: Composition, scenario: Json) -> None:
    loaded = ObjectsLoaded(list(objects(scenario)))
    cluster.apply(loaded)
    composition.jobs.apply(loaded)


def project(outcome: Json, job_of: Mapping[str, str]) -> Json:
    """Return the projections of an outcome, such as `boundPerJob`, by name.

    Projections are parts that are compared one by one. `job_of` maps the key of each task to the
    key of its job.
    """
    evicted = [one["task"] for one in outcome["evictions"]]
    return {
        "placements": outcome["binds"],
        "boundTasks": sorted(outcome["binds"]),
        "boundPerJob": _per_job(outcome["binds"], job_of),
        "evictedTasks": sorted(evicted),
        "evictedPerJob": _per_job(evicted, job_of),
        "pipelinedPerJob": _per_job(outcome["pipelined"], job_of),
        "phases": {name: group["phase"] for name, group in outcome["podGroups"].items()},
        "queuesOpen": outcome["queuesOpen"],
    }


def _per_job(tasks: Iterable[str], job_of: Mapping[str, str]) -> Json:
    return dict(Counter(job_of[task] for task in tasks))
