"""Volcano's Jobs (`batch.volcano.sh`) in a change: the gang that Volcano would create for them.

Volcano's controller creates a PodGroup for a Job, and pods for the tasks of the Job. This
controller is not simulated. So the change creates the PodGroup itself, and a Kubernetes Job for
each task. The Job controller of Kubernetes creates the pods and replaces preempted pods.

upstream: volcano: pkg/controllers/job/job_controller_actions.go: createOrUpdatePodGroup,
pkg/controllers/job/job_controller_util.go: createJobPod; defaults of fields:
pkg/webhooks/admission/jobs/mutate/mutate_job.go: createPatch
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from fairlead.api.json import Json, mapping
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.scheduler_name import VOLCANO
from fairlead.whatif.change.job_pod_template import JobPodTemplate, part_of, with_job_defaults
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.snapshot.manifest import Manifest

GROUP: Final = "batch.volcano.sh"
_POD_GROUP_API: Final = "scheduling.volcano.sh/v1beta1"
_TASK: Final = "volcano.sh/task-spec"
_UNNAMED: Final = "default"  # the name of a task without a name is this and its index
# The fields of a Job, and of its tasks, that may change.
_MUTABLE: Final = ("minAvailable", "priorityClassName", "maxRetry")
_MUTABLE_IN_TASKS: Final = ("replicas", "minAvailable", "maxRetry")
_OTHER_FIELDS: Final = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec`"
)
_OTHER_TASKS: Final = "job updates may not add or remove tasks"

_HOST_NETWORK_DNS: Final = "ClusterFirstWithHostNet"  # the DNS policy of tasks with hostNetwork

_Count = Annotated[int, Meta(ge=0)]


class _Task(Struct, rename="camel"):
    template: JobPodTemplate
    name: str = ""
    replicas: _Count = 0
    min_available: _Count | None = None

    @property
    def minimum(self) -> int:
        """The minAvailable of the task, by default the number of its replicas.

        If the Job itself has no minAvailable, the minMember of its PodGroup is the sum of this
        number over all tasks.
        """
        return self.replicas if self.min_available is None else self.min_available


class _Spec(Struct, rename="camel"):
    tasks: Annotated[tuple[_Task, ...], Meta(min_length=1)]
    min_available: _Count = 0
    queue: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""


class _VolcanoJob(Struct):
    spec: _Spec


def gang_of(one: Manifest, name: str) -> Iterator[Document]:
    """Yield the PodGroup and the Jobs that stand for the Volcano Job `one` with the name `name`.

    Yields nothing if `one` is no Volcano Job. Raises InputError for a Job that Volcano's admission
    webhooks refuse.
    """
    if (one.kind.group, one.kind.kind) != (GROUP, JOB.kind):
        return
    spec = _valid_spec(one)
    meta = {"namespace": one.ref.namespace, "labels": dict(one.labels)}
    group = {
        "minMember": spec.min_available or sum(task.minimum for task in spec.tasks),
        "queue": spec.queue or "default",
    }
    minima = {
        task.name: task.min_available for task in spec.tasks if task.min_available is not None
    }
    if minima:
        group["minTaskMember"] = minima
    if spec.priority_class_name:
        group["priorityClassName"] = spec.priority_class_name
    named = meta | {"name": name}
    yield part_of(
        one, {"apiVersion": _POD_GROUP_API, "kind": "PodGroup", "metadata": named, "spec": group}
    )
    for index, task in enumerate(spec.tasks):
        template = _template(task, name, spec)
        count = {"parallelism": task.replicas, "completions": task.replicas}
        job = {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": meta | {"name": f"{name}-{task.name}"},
            "spec": count | {"template": template},
        }
        yield part_of(one, job, f"spec.tasks[{index}]")


def _template(task: _Task, group: str, spec: _Spec) -> Json:
    pod, meta = dict(task.template.spec), task.template.metadata
    pod.setdefault("schedulerName", spec.scheduler_name or VOLCANO)
    if spec.priority_class_name:
        pod.setdefault("priorityClassName", spec.priority_class_name)
    if pod.get("restartPolicy", "Always") == "Always":  # Jobs of Kubernetes do not allow it
        pod["restartPolicy"] = "OnFailure"
    marks = {GROUP_NAME_ANNOTATION: group, _TASK: task.name}
    annotations = {**meta.annotations, **marks}
    return {"metadata": {"annotations": annotations, "labels": meta.labels}, "spec": pod}


def _valid_spec(one: Manifest) -> _Spec:
    """Return the spec of `one`; a task without a name gets Volcano's default name.

    upstream: pkg/webhooks/admission/jobs/validate/admit_job.go: validateJobCreate
    """
    try:
        spec = decode_strictly(Document(one.source, one.value), _VolcanoJob).spec
    except InputError as cause:
        raise one.refuse(cause.problem, field=cause.field) from None
    tasks: dict[str, _Task] = {}
    for index, given in enumerate(spec.tasks):
        path = f"spec.tasks[{index}]"
        task = given if given.name else replace(given, name=f"{_UNNAMED}{index}")
        if task.name in tasks:
            raise one.refuse(f"{task.name!r} appears twice", field=f"{path}.name")
        if task.minimum > task.replicas:
            problem = f"{task.minimum} is more than the {task.replicas} replicas of the task"
            raise one.refuse(problem, field=f"{path}.minAvailable")
        tasks[task.name] = task
    total = sum(task.replicas for task in spec.tasks)
    if spec.min_available > total:
        problem = f"{spec.min_available} is more than the {total} replicas of all tasks"
        raise one.refuse(problem, field="spec.minAvailable")
    return replace(spec, tasks=tuple(tasks.values()))


def refuse_immutable_field(before: Manifest, after: Manifest) -> None:
    """Raise InputError if `after`, a Job of Volcano, differs from `before` in an immutable field.

    upstream: pkg/webhooks/admission/jobs/validate/admit_job.go: validateJobUpdate
    """
    if (before.kind.group, before.kind.kind) != (GROUP, JOB.kind):
        return
    old, new = _fixed_fields(before.value), _fixed_fields(after.value)
    was, now = old.pop("tasks"), new.pop("tasks")
    if len(was) != len(now):
        raise after.refuse(_OTHER_TASKS, field="spec.tasks")
    for index, (one, other) in enumerate(zip(was, now, strict=True)):
        if one != other:
            raise after.refuse(_OTHER_FIELDS, field=f"spec.tasks[{index}]")
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            raise after.refuse(_OTHER_FIELDS, field=f"spec.{name}")


def _fixed_fields(job: Json) -> dict[str, Any]:
    """Return the immutable fields in the spec of `job`, with defaults."""
    spec = _with_webhook_defaults(mapping(job, "spec"))
    found = {name: value for name, value in spec.items() if name not in _MUTABLE}
    found["volumes"] = [
        # The controller writes the name of a claim that it creates.
        one | {"volumeClaimName": ""} if mapping(one, "volumeClaim") else one
        for one in spec.get("volumes") or ()
    ]
    found["tasks"] = [
        {name: value for name, value in task.items() if name not in _MUTABLE_IN_TASKS}
        | {"template": with_job_defaults({"template": task.get("template")})}
        for task in spec["tasks"]
    ]
    return found


def _with_webhook_defaults(spec: Json) -> Json:
    """Return `spec` with the defaults that Volcano's webhook sets in fields that cannot change.

    upstream: pkg/webhooks/admission/jobs/mutate/mutate_job.go: createPatch, mutateSpec
    """
    tasks = [
        task | {"name": task.get("name") or f"{_UNNAMED}{index}"}
        for index, task in enumerate(spec.get("tasks") or ())
    ]
    for task in tasks:
        pod = mapping(task, "template", "spec")
        if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
            task["template"] = task["template"] | {"spec": pod | {"dnsPolicy": _HOST_NETWORK_DNS}}
    return {"queue": "default", "schedulerName": VOLCANO, **spec, "tasks": tasks}


def gang_notes(jobs: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note about the `jobs` of Volcano for which the change creates gangs."""
    if jobs:
        names = listed([one.ref.key for one in jobs], 2)
        is_one = len(jobs) == 1
        yield (
            f"Volcano's controller is not simulated. For {'Job' if is_one else 'Jobs'} {names} "
            f"({GROUP}), a PodGroup and a Job of Kubernetes for each task are created. "
            f"{'Its' if is_one else 'Their'} pods have other names. Policies, plugins, volumes, "
            "dependsOn and the minAvailable of single tasks have no effect."
        )
