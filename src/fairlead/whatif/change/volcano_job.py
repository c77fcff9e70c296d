"""Volcano's Jobs (`batch.volcano.sh`) in a change: the gang that Volcano would create for them.

Volcano's controller creates a PodGroup for a Job, and pods for the tasks of the Job. This
controller is not simulated. Instead, the change also creates the PodGroup, and for each task a Job
of Kubernetes, whose controller creates the pods and replaces preempted ones.

upstream: volcano: pkg/controllers/job/job_controller_actions.go: createOrUpdatePodGroup,
pkg/controllers/job/job_controller_util.go: createJobPod; defaults of fields:
pkg/webhooks/admission/jobs/mutate/mutate_job.go: createPatch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.scheduler_name import VOLCANO
from fairlead.whatif.snapshot.manifest import Manifest

GROUP: Final = "batch.volcano.sh"
_POD_GROUP_API: Final = "scheduling.volcano.sh/v1beta1"
_TASK: Final = "volcano.sh/task-spec"
_UNNAMED: Final = "default"  # the name of a task without a name is this and its index


class _Task(Struct, rename="camel"):
    template: Json
    name: str = ""
    replicas: int = 1
    min_available: int | None = None

    @property
    def minimum(self) -> int:
        """The number of pods of the task that count for the default of the Job's minAvailable."""
        return self.replicas if self.min_available is None else self.min_available


class _Spec(Struct, rename="camel"):
    tasks: tuple[_Task, ...]
    min_available: int = 0
    queue: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""


class _VolcanoJob(Struct):
    spec: _Spec


def gang_of(one: Manifest) -> Iterator[Json]:
    """Yield the PodGroup and the Jobs that stand for the Job `one` of Volcano, if it is one."""
    form = _form(one)
    if form is None:
        return
    meta = {"namespace": one.ref.namespace, "labels": dict(one.labels)}
    spec = form.spec
    tasks = [
        task if task.name else replace(task, name=f"{_UNNAMED}{index}")
        for index, task in enumerate(spec.tasks)
    ]
    group = {
        "minMember": spec.min_available or sum(task.minimum for task in tasks),
        "queue": spec.queue or "default",
    }
    minima = {task.name: task.min_available for task in tasks if task.min_available is not None}
    if minima:
        group["minTaskMember"] = minima
    if spec.priority_class_name:
        group["priorityClassName"] = spec.priority_class_name
    named = meta | {"name": one.ref.name}
    yield {"apiVersion": _POD_GROUP_API, "kind": "PodGroup", "metadata": named, "spec": group}
    for task in tasks:
        template = _template(task, one.ref.name, spec)
        count = {"parallelism": task.replicas, "completions": task.replicas}
        yield {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": meta | {"name": f"{one.ref.name}-{task.name}"},
            "spec": count | {"template": template},
        }


def _template(task: _Task, group: str, spec: _Spec) -> Json:
    pod, meta = dict(task.template.get("spec") or {}), dict(task.template.get("metadata") or {})
    pod.setdefault("schedulerName", spec.scheduler_name or VOLCANO)
    if spec.priority_class_name:
        pod.setdefault("priorityClassName", spec.priority_class_name)
    if pod.get("restartPolicy") != "Never":  # Jobs of Kubernetes do not allow Always
        pod["restartPolicy"] = "OnFailure"
    marks = {GROUP_NAME_ANNOTATION: group, _TASK: task.name}
    meta["annotations"] = {**(meta.get("annotations") or {}), **marks}
    return {"metadata": meta, "spec": pod}


def _form(one: Manifest) -> _VolcanoJob | None:
    if (one.kind.group, one.kind.kind) != (GROUP, JOB.kind):
        return None
    try:
        form = msgspec.convert(one.value, _VolcanoJob)
    except msgspec.ValidationError:
        return None
    return form if form.spec.tasks else None


def gang_notes(jobs: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note about the `jobs` of Volcano for which the change creates gangs."""
    if jobs:
        names = listed([one.ref.key for one in jobs], 2)
        is_one = len(jobs) == 1
        yield (
            f"For {'Job' if is_one else 'Jobs'} {names} ({GROUP}), a PodGroup and a Job of "
            f"Kubernetes for each task are created, because Volcano's controller is not simulated: "
            f"{'its' if is_one else 'their'} pods have other names, and policies have no effect."
        )
