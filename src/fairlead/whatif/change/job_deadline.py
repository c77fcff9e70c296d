"""Leaves out activeDeadlineSeconds of the Jobs that a change starts, if their run time is unknown.

Pods without a known run time are assumed to keep running. So each of these Jobs would exceed its
deadline, and the answer would say that the change makes it fail. Jobs that run in the dump keep
their deadline: it passes in the run without the change, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.apiserver.kind import JOB
from fairlead.engine.core.command import Command, CreateObject, PatchObject
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change.cluster_change import ChangeScript

RunDurations = Callable[[Pod], DurationNs | None]

_FIELD: Final = "activeDeadlineSeconds"
_NAMES_MAX: Final = 3


def without_job_deadlines(script: ChangeScript, run_durations: RunDurations | None) -> ChangeScript:
    """Return `script` in which the Jobs that it creates or resumes have no deadline.

    Notes name these Jobs. A Job keeps its deadline if its pods have the annotation
    `fairlead.dev/run-duration`, or if `run_durations` returns their run time.
    """
    written = {one.ref: one.value for one in script.written}
    names: list[str] = []

    def changed(command: Command) -> Command:
        match command:
            case CreateObject(manifest=job):
                pass
            case PatchObject(patch=patch) if "suspend" in (patch.get("spec") or {}):
                job = written.get(command.target, {})
            case _:
                return command
        if command.target.kind != JOB.kind or not _starts_with_deadline(job, run_durations):
            return command
        names.append(f"{command.target.key} ({job['spec'][_FIELD]:,}s)")
        if isinstance(command, PatchObject):
            spec = {**command.patch["spec"], _FIELD: None}
            return PatchObject(command.target, {**command.patch, "spec": spec})
        spec = {name: value for name, value in job["spec"].items() if name != _FIELD}
        return CreateObject({**job, "spec": spec})

    steps = [replace(one, commands=tuple(map(changed, one.commands))) for one in script.steps]
    if not names:
        return script
    return replace(script, steps=tuple(steps), notes=(*script.notes, _note(names)))


def _starts_with_deadline(job: Mapping[str, Any], run_durations: RunDurations | None) -> bool:
    """Return whether `job` is not suspended and has a deadline, but no known run time."""
    spec = job.get("spec") or {}
    deadline_s = spec.get(_FIELD)
    is_valid = isinstance(deadline_s, int) and deadline_s > 0  # validation refuses other values
    return is_valid and not spec.get("suspend") and not _has_run_time(job, run_durations)


def _has_run_time(job: Mapping[str, Any], run_durations: RunDurations | None) -> bool:
    """Return whether the run time of the pods of `job` is known, or the template is malformed."""
    meta, template = job["metadata"], job["spec"].get("template") or {}
    name, namespace = meta.get("name", ""), meta.get("namespace", "")
    owner = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": name, "controller": True}
    try:
        own = {**(template.get("metadata") or {}), "name": name, "namespace": namespace}
        pod = decode_as(Pod, {**template, "metadata": {**own, "ownerReferences": [owner]}})
    except (DecodeError, AttributeError, TypeError):
        return True
    is_stated = RUN_DURATION in pod.metadata.annotations
    return is_stated or (run_durations is not None and run_durations(pod) is not None)


def _note(names: Sequence[str]) -> str:
    jobs, fail = ("Job", "fails") if len(names) == 1 else ("Jobs", "fail")
    more = f" and {len(names) - _NAMES_MAX:,} more" if len(names) > _NAMES_MAX else ""
    return (
        f"{_FIELD} of {jobs} {', '.join(names[:_NAMES_MAX])}{more} is not applied, because the run "
        f"time of the pods is unknown (annotation {RUN_DURATION}). In the answer, the pods run "
        f"until the end; if they run longer than the deadline, the {jobs} {fail}."
    )
