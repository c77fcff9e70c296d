"""Table rows of workloads, such as Deployments and Jobs.

upstream: pkg/printers/internalversion/printers.go:printDeployment, printJob, ...
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, number, text
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.printers.age import age, age_of, human_duration
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import (
    NONE,
    UNSET,
    container_images,
    container_names,
    has_condition,
    labels,
    selector_text,
)

# The conditions that determine a Job's status, in the order in which they are checked. The first
# condition that is True is the status. Exception: a Job that is being deleted and has none of the
# conditions in _JOB_ENDS is Terminating.
_JOB_ENDS: Final = ("Complete", "Failed")
_JOB_STATES: Final = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _template(obj: Json) -> Json:
    return mapping(obj, "spec", "template", "spec")


def _pods(spec: Json) -> list[Cell]:
    return [container_names(spec), container_images(spec)]


def _replicas(obj: Json) -> list[Cell]:
    return [
        name_of(obj),
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
    ]


def _replica_set(obj: Json, now: int) -> list[Cell]:
    selected = selector_text(at(obj, "spec", "selector")) or NONE
    return [*_replicas(obj), age_of(obj, now), *_pods(_template(obj)), selected]


def _replication_controller(obj: Json, now: int) -> list[Cell]:
    selected = labels(mapping(obj, "spec", "selector"))
    return [*_replicas(obj), age_of(obj, now), *_pods(_template(obj)), selected]


def _ready(obj: Json) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


def _deployment(obj: Json, now: int) -> list[Cell]:
    return [
        name_of(obj),
        _ready(obj),
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        age_of(obj, now),
        *_pods(_template(obj)),
        selector_text(at(obj, "spec", "selector")),
    ]


def _stateful_set(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), _ready(obj), age_of(obj, now), *_pods(_template(obj))]


def _daemon_set(obj: Json, now: int) -> list[Cell]:
    status = mapping(obj, "status")
    return [
        name_of(obj),
        number(status, "desiredNumberScheduled"),
        number(status, "currentNumberScheduled"),
        number(status, "numberReady"),
        number(status, "updatedNumberScheduled"),
        number(status, "numberAvailable"),
        labels(mapping(_template(obj), "nodeSelector")),
        age_of(obj, now),
        *_pods(_template(obj)),
        selector_text(at(obj, "spec", "selector")) or NONE,
    ]


def _job(obj: Json, now: int) -> list[Cell]:
    return [
        name_of(obj),
        _job_status(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        age_of(obj, now),
        *_pods(_template(obj)),
        selector_text(at(obj, "spec", "selector")) or NONE,
    ]


def _job_status(obj: Json) -> str:
    for condition in _JOB_ENDS:
        if has_condition(obj, condition):
            return condition
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    states = (state for condition, state in _JOB_STATES if has_condition(obj, condition))
    return next(states, "Running")


def _job_completions(obj: Json) -> str:
    succeeded, desired = number(obj, "status", "succeeded"), at(obj, "spec", "completions")
    if desired is not None:
        return f"{succeeded}/{desired}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Json, now: int) -> str:
    started = text(obj, "status", "startTime")
    if not started:
        return ""
    completed = text(obj, "status", "completionTime")
    return human_duration(
        (parse_timestamp(completed) if completed else now) - parse_timestamp(started)
    )


def _cron_job(obj: Json, now: int) -> list[Cell]:
    spec, last = mapping(obj, "spec"), at(obj, "status", "lastScheduleTime")
    job = mapping(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        text(spec, "schedule"),
        text(spec, "timeZone") or NONE,
        UNSET if spec.get("suspend") is None else str(bool(spec["suspend"])),
        len(items(obj, "status", "active")),
        age(last, now) if last else NONE,
        age_of(obj, now),
        *_pods(mapping(job, "template", "spec")),
        selector_text(at(job, "selector")) or NONE,
    ]


def _controller_revision(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), _controller(obj), number(obj, "revision"), age_of(obj, now)]


def _controller(obj: Json) -> str:
    for owner in items(obj, "metadata", "ownerReferences"):
        if owner.get("controller"):
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind") + (f".{group}" if group else "")
            return f"{kind.lower()}/{text(owner, 'name')}"
    return NONE


def _pod_template(obj: Json, _now: int) -> list[Cell]:
    template = mapping(obj, "template")
    pods = _pods(mapping(template, "spec"))
    return [name_of(obj), *pods, labels(mapping(template, "metadata", "labels"))]


def _scale(obj: Json, now: int) -> list[Cell]:
    desired, actual = number(obj, "spec", "replicas"), number(obj, "status", "replicas")
    return [name_of(obj), desired, actual, age_of(obj, now)]


_REPLICAS: Final = (
    "Name/name, Desired:integer, Current:integer, Ready:integer, Age, "
    "Containers*, Images*, Selector*"
)
REPLICA_SET: Final = printer(_REPLICAS, _replica_set)
REPLICATION_CONTROLLER: Final = printer(_REPLICAS, _replication_controller)
DEPLOYMENT: Final = printer(
    "Name/name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*", _deployment
)
STATEFUL_SET: Final = printer("Name/name, Ready, Age, Containers*, Images*", _stateful_set)
DAEMON_SET: Final = printer(
    "Name/name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, "
    "Available:integer, Node Selector, Age, Containers*, Images*, Selector*",
    _daemon_set,
)
JOB: Final = printer(
    "Name/name, Status, Completions, Duration, Age, Containers*, Images*, Selector*", _job
)
CRON_JOB: Final = printer(
    "Name/name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, "
    "Containers*, Images*, Selector*",
    _cron_job,
)
CONTROLLER_REVISION: Final = printer("Name/name, Controller, Revision, Age", _controller_revision)
POD_TEMPLATE: Final = printer("Name/name, Containers, Images, Pod Labels", _pod_template)
SCALE: Final = printer("Name, Desired:integer, Available:integer, Age", _scale)
