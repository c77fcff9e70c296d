"""Ignores activeDeadlineSeconds of Jobs and pods that a change starts, if no run time is known.

Pods without a known run time are assumed to keep running. So each Job or pod that the change starts
would exceed its deadline and fail. Jobs and pods that already run in the dump keep their deadlines.
These deadlines apply in both runs, with and without the change.

The deadline is removed from Jobs. In pods it stays, because quotas with the scope Terminating count
only pods with a deadline. The simulated kubelets ignore the deadline of these pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB, POD
from fairlead.engine.core.command import Command, CreateObject, PatchObject
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change.change_script import ChangeScript
from fairlead.whatif.snapshot.served_kind import full_kind

RunDurations = Callable[[Pod], DurationNs | None]

_FIELD: Final = "activeDeadlineSeconds"


class IgnoredDeadlines(Struct, frozen=True):
    """A function that tells whether the kubelets ignore the deadline of a pod.

    `names` contains the (kind, namespace, name) of each pod whose deadline is ignored, and of each
    Job that owns such pods.
    """

    names: frozenset[tuple[str, str, str]]

    def __call__(self, pod: Pod) -> bool:
        """Return whether the kubelets ignore the deadline of `pod`."""
        owner, meta = controller_of(pod.metadata), pod.metadata
        if owner is None:
            return (POD.kind, meta.namespace, meta.name) in self.names
        kind = full_kind(owner.kind, owner.api_version)
        return (kind, meta.namespace, owner.name) in self.names


def without_deadlines(
    script: ChangeScript, run_durations: RunDurations | None
) -> tuple[ChangeScript, IgnoredDeadlines | None]:
    """Return `script` without the deadlines of the Jobs that it creates or resumes.

    The second result is a function that tells whether the kubelets ignore the deadline of a pod.
    The kubelets ignore the deadlines of pods of these Jobs, and of pods that `script` creates. If
    none of these pods has a deadline, the second result is None instead of a function. A note in
    the script names the Jobs and pods whose deadlines are removed or ignored. But a Job or pod
    keeps its deadline if it has the annotation `fairlead.dev/run-duration`, or if `run_durations`
    returns its run time.
    """
    written = {one.ref: one.value for one in script.written}
    notes: list[_Deadline] = []

    def changed(command: Command) -> Command:
        match command:
            case CreateObject(manifest=created):
                pass
            case PatchObject(patch=patch) if "suspend" in (patch.get("spec") or {}):
                created = written.get(command.target, {})
            case _:
                return command
        found = _deadline(created, command.target.kind, run_durations)
        if found is None:
            return command
        notes.append(found)
        if found.of_job is None:
            return command
        if isinstance(command, PatchObject):
            spec = {**command.patch["spec"], _FIELD: None}
            return PatchObject(command.target, {**command.patch, "spec": spec})
        spec = {name: value for name, value in created["spec"].items() if name != _FIELD}
        return CreateObject({**created, "spec": spec})

    steps = [replace(one, commands=tuple(map(changed, one.commands))) for one in script.steps]
    if not notes:
        return script, None
    names = frozenset(one.name for one in notes if one.of_pods is not None)
    script = replace(script, steps=tuple(steps), notes=(*script.notes, _note(notes)))
    return script, IgnoredDeadlines(names) if names else None


def sets_deadline(script: ChangeScript) -> bool:
    """Return whether `script` sets the deadline of an existing Job."""
    return any(
        isinstance(command, PatchObject)
        and command.target.kind == JOB.kind
        and (command.patch.get("spec") or {}).get(_FIELD) is not None
        for step in script.steps
        for command in step.commands
    )


class _Deadline(Struct, frozen=True):
    """The deadlines of an object in seconds; `name` is its kind, namespace and name."""

    name: tuple[str, str, str]
    of_job: int | None
    of_pods: int | None

    def __str__(self) -> str:
        kind, namespace, name = self.name
        words = [] if self.of_job is None else [f"{self.of_job:,}s"]
        if self.of_pods is not None:
            each = "" if kind == POD.kind else " for each pod"
            words.append(f"{self.of_pods:,}s{each}")
        return f"{kind} {namespace}/{name} ({', '.join(words)})"


def _deadline(
    created: Mapping[str, Any], kind: str, run_durations: RunDurations | None
) -> _Deadline | None:
    """Return the deadlines of `created`, a Job or pod, and of the pods of the Job.

    `kind` is the kind of `created`. Return None if there is no deadline, or if `run_durations`
    knows how long the pods run. Also return None for a suspended Job, a malformed object, or an
    object of another kind.
    """
    spec = created.get("spec") or {}
    if kind not in (JOB.kind, POD.kind) or spec.get("suspend"):
        return None
    meta = created["metadata"]
    name, namespace = meta.get("name", ""), meta.get("namespace", "")
    if kind == POD.kind:
        of_job, template, owners = None, created, []
    else:
        of_job, template = _positive(spec.get(_FIELD)), spec.get("template") or {}
        owner = {"apiVersion": JOB.api_version, "kind": kind, "name": name, "controller": True}
        owners = [owner]
    try:
        own = {**(template.get("metadata") or {}), "name": name, "namespace": namespace}
        pod = decode_as(Pod, {**template, "metadata": {**own, "ownerReferences": owners}})
    except (DecodeError, AttributeError, TypeError):
        return None  # the template is malformed
    of_pods = _positive(pod.spec.active_deadline_seconds)
    if of_job is None and of_pods is None:
        return None
    is_stated = RUN_DURATION in pod.metadata.annotations
    if is_stated or (run_durations is not None and run_durations(pod) is not None):
        return None
    return _Deadline((kind, namespace, name), of_job, of_pods)


def _positive(deadline_s: object) -> int | None:
    """Return `deadline_s` if it is a valid deadline; otherwise None."""
    return deadline_s if isinstance(deadline_s, int) and deadline_s > 0 else None


def _note(found: Sequence[_Deadline]) -> str:
    fail = f"the {found[0].name[0]} fails" if len(found) == 1 else "they fail"
    names = listed([str(one) for one in found])
    return (
        f"{_FIELD} of {names} is not applied, because the run time of the pods is unknown "
        f"(annotation {RUN_DURATION}). In the answer, the pods run until the end. In the cluster, "
        f"{fail} if the run time exceeds the deadline."
    )
