"""JobSets (`jobset.x-k8s.io`) in a change: the objects that the JobSet controller would create.

This controller is not simulated. So the change creates the Jobs and the headless Service itself,
all at the start. The Job controller of Kubernetes creates the pods.

upstream: jobset: pkg/controllers/jobset_controller.go: constructJob, labelAndAnnotateObject;
defaults and checks of fields: pkg/webhooks/jobset_webhook.go: Default, ValidateCreate
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha1
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json, mapping
from fairlead.api.objects import Job
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB, SERVICE
from fairlead.apiserver.validation.meta.format import IMMUTABLE, dns_1035_problems
from fairlead.engine.workloads.job.rule import is_finished
from fairlead.whatif.change.exclusive_topology import (
    BY_NODE_SELECTOR,
    JOB_KEY,
    TOPOLOGY,
    priority_label,
    topology_annotations,
    with_exclusive_topology,
)
from fairlead.whatif.change.job_pod_template import (
    JobPodTemplate,
    TemplateMetadata,
    part_of,
    with_job_defaults,
)
from fairlead.whatif.change.pod_priority import PodPriorities
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

GROUP: Final = "jobset.x-k8s.io"
KIND: Final = "JobSet"
_LABELS: Final = "jobset.sigs.k8s.io"
_CONTROLLER: Final = "jobset.sigs.k8s.io/jobset-controller"
_JOBS_MAX: Final = 100_000
# The fields of a pod's spec that may change in the templates of a suspended JobSet, besides labels
# and annotations.
_MUTABLE: Final = ("nodeSelector", "tolerations", "schedulingGates")
# Fields of the spec that must not change if they are set.
_FIXED: Final = (
    "network",
    "successPolicy",
    "failurePolicy",
    "startupPolicy",
    "volumeClaimPolicies",
)
_FIXED_PROBLEM: Final = "Value is immutable"
_POLICY_DEFAULTS: Final[dict[str, Json]] = {
    "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
    "successPolicy": {"operator": "All"},
    "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    "failurePolicy": {"maxRestarts": 0, "restartStrategy": "Recreate"},
}
_ALWAYS_SET: Final = ("network", "successPolicy", "startupPolicy")

_Count = Annotated[int, Meta(ge=0)]


class _JobSpec(Struct, rename="camel"):
    template: JobPodTemplate
    completions: int | None = None
    completion_mode: str | None = None

    @property
    def indexes(self) -> int | None:
        """The number of completion indexes; None if the Job has no indexes or no `completions`."""
        return self.completions if self.completion_mode in {None, "Indexed"} else None


class _JobTemplate(Struct):
    spec: _JobSpec
    metadata: TemplateMetadata = field(default_factory=TemplateMetadata)


class _Dependency(Struct):
    name: str


class _ReplicatedJob(Struct, rename="camel"):
    name: str
    template: _JobTemplate
    replicas: _Count = 1
    depends_on: tuple[_Dependency, ...] = ()
    group_name: str = "default"


class _Network(Struct):
    enables_hostnames: bool = field(default=True, name="enableDNSHostnames")
    subdomain: str = ""


class _Coordinator(Struct, rename="camel"):
    replicated_job: str
    job_index: _Count = 0
    pod_index: _Count = 0


class _StartupPolicy(Struct, rename="camel"):
    startup_policy_order: Literal["AnyOrder", "InOrder"]


class _SuccessPolicy(Struct, rename="camel"):
    operator: Literal["All", "Any"]
    target_replicated_jobs: tuple[str, ...] = ()


class _FailureRule(Struct, rename="camel"):
    target_replicated_jobs: tuple[str, ...] = ()


class _FailurePolicy(Struct):
    rules: tuple[_FailureRule, ...] = ()


class _Spec(Struct, rename="camel"):
    # The API server accepts a JobSet without replicatedJobs, but it would never have pods.
    replicated_jobs: Annotated[tuple[_ReplicatedJob, ...], Meta(min_length=1)]
    suspend: bool | None = None
    managed_by: str | None = None
    network: _Network = field(default_factory=_Network)
    coordinator: _Coordinator | None = None
    startup_policy: _StartupPolicy | None = None
    success_policy: _SuccessPolicy | None = None
    failure_policy: _FailurePolicy | None = None


class _JobSet(Struct):
    spec: _Spec


def jobs_of(
    one: Manifest, set_name: str, priorities: PodPriorities | None = None
) -> Iterator[Document]:
    """Yield the Service and the Jobs of the JobSet `one`, as if its name were `set_name`.

    Yields nothing if `one` is no JobSet, or if its `managedBy` names another controller. Raises
    InputError for a JobSet that the API server or the JobSet webhook refuses, and for a JobSet
    without replicatedJobs or with too many Jobs. `set_name` is not checked. If `priorities` is
    None, exclusive topologies do not depend on the priorities of the pods.
    """
    if (one.kind.group, one.kind.kind) != (GROUP, KIND):
        return
    spec = _valid_spec(one)
    if spec.managed_by not in {None, _CONTROLLER}:
        return
    total = sum(replicated.replicas for replicated in spec.replicated_jobs)
    written = one.value["spec"]["replicatedJobs"]
    annotations = one.metadata.annotations
    subdomain = spec.network.subdomain or set_name
    if spec.network.enables_hostnames:
        yield part_of(one, _service(one.ref.namespace, subdomain, set_name))
    in_groups = Counter[str]()
    for replicated in spec.replicated_jobs:
        in_groups[replicated.group_name] += replicated.replicas
    of_group = Counter[str]()  # the Jobs so far
    own = _coordinator_mark(set_name, spec, subdomain)
    each = [
        (at, replicated, index)
        for at, replicated in enumerate(spec.replicated_jobs)
        for index in range(replicated.replicas)
    ]
    for number, (at, replicated, index) in enumerate(each):
        name = f"{set_name}-{replicated.name}-{index}"
        marks = {
            f"{_LABELS}/jobset-name": set_name,
            f"{_LABELS}/replicatedjob-name": replicated.name,
            f"{_LABELS}/restart-attempt": "0",
            f"{_LABELS}/replicatedjob-replicas": str(replicated.replicas),
            f"{_LABELS}/global-replicas": str(total),
            f"{_LABELS}/job-index": str(index),
            JOB_KEY: _digest(f"{one.ref.namespace}/{name}"),
            f"{_LABELS}/job-global-index": str(number),
            f"{_LABELS}/group-name": replicated.group_name,
            f"{_LABELS}/group-replicas": str(in_groups[replicated.group_name]),
            f"{_LABELS}/job-group-index": str(of_group[replicated.group_name]),
            **own,
        }
        of_group[replicated.group_name] += 1
        topology = topology_annotations(annotations, replicated.template.metadata.annotations)
        if TOPOLOGY in topology and BY_NODE_SELECTOR not in topology:
            _refuse_without_index(one, replicated, f"spec.replicatedJobs[{at}]")
        job = _job(replicated.template, written[at]["template"]["spec"], marks, topology)
        if spec.network.enables_hostnames:
            job["spec"]["template"]["spec"]["subdomain"] = subdomain
        template = job["spec"]["template"]
        if priorities is not None and BY_NODE_SELECTOR not in topology:
            template["metadata"]["labels"] |= priority_label(priorities.of(template["spec"]))
        template["spec"] = with_exclusive_topology(
            template["spec"], template["metadata"], one.ref.namespace, name
        )
        job["metadata"] |= {"name": name, "namespace": one.ref.namespace}
        # The JobSet's `suspend` replaces the one of the template, also if it is absent.
        job["spec"]["suspend"] = bool(spec.suspend)
        yield part_of(one, job, f"spec.replicatedJobs[{at}].template")


def refuse_immutable_change(before: Manifest, after: Manifest) -> None:
    """Raise InputError if the JobSet `after` differs from `before` in an immutable field.

    While the JobSet is suspended, and when it becomes suspended, some fields of its pod templates
    may change (see `_MUTABLE`).

    upstream: pkg/webhooks/jobset_webhook.go: ValidateUpdate; rules `self == oldSelf` in
    api/jobset/v1alpha2/jobset_types.go
    """
    if (before.kind.group, before.kind.kind) != (GROUP, KIND):
        return
    old, new = mapping(before.value, "spec"), mapping(after.value, "spec")
    is_suspended = any(spec.get("suspend") is True for spec in (old, new))
    jobs = [_replicated_jobs(spec, is_suspended=is_suspended) for spec in (old, new)]
    if jobs[0] != jobs[1]:
        raise after.refuse(IMMUTABLE, field="spec.replicatedJobs")
    if old.get("managedBy") != new.get("managedBy"):
        raise after.refuse(IMMUTABLE, field="spec.managedBy")
    for name in _FIXED:
        was, now = _policy(name, old.get(name)), _policy(name, new.get(name))
        if was and now and was != now:
            raise after.refuse(_FIXED_PROBLEM, field=f"spec.{name}")


def _replicated_jobs(spec: Json, *, is_suspended: bool) -> list[Any]:
    """Return the replicatedJobs in `spec` with all defaults, without fields that may change.

    If `is_suspended` is set, the JobSet is suspended, and further fields may change.
    """
    found: list[Any] = []
    for written in spec.get("replicatedJobs") or ():
        template = mapping(written, "template")
        job = mapping(template, "spec")
        pod = mapping(job, "template")
        pod = pod | {"spec": {"restartPolicy": "OnFailure", **mapping(pod, "spec")}}
        job = with_job_defaults({"completionMode": "Indexed", **job, "template": pod})
        if is_suspended:
            pod = mapping(job, "template")
            own = {key: value for key, value in mapping(pod, "spec").items() if key not in _MUTABLE}
            meta = mapping(pod, "metadata")
            meta = {key: meta[key] for key in meta if key not in {"labels", "annotations"}}
            job = job | {"template": {"metadata": meta, "spec": own}}
        template = template | {"metadata": template.get("metadata") or {}, "spec": job}
        found.append({"replicas": 1, "groupName": "default", **written, "template": template})
    return found


def _policy(name: str, value: Any) -> Any:
    """Return `value`, the field `name` of a JobSet's spec, with the defaults of JobSet's webhook.

    upstream: pkg/webhooks/jobset_webhook.go: Default
    """
    defaults = _POLICY_DEFAULTS.get(name, {})
    if value is None:
        return defaults if name in _ALWAYS_SET else None
    if not isinstance(value, dict):
        return value
    rules = value.get("rules")
    if name == "failurePolicy" and isinstance(rules, list):
        named = [{"name": f"failurePolicyRule{at}", **one} for at, one in enumerate(rules)]
        value = value | {"rules": named}
    return {**defaults, **value}


def resumed_jobs(before: Manifest, after: Manifest, inventory: Inventory) -> list[Manifest]:
    """Return the Jobs that the JobSet controller suspends or resumes, as they are afterwards.

    `before` and `after` are an object before and after a change. The result is [] if the object is
    not a JobSet, or if its `suspend` has not changed. Completed and failed Jobs are left out.
    `inventory` contains the Jobs before the change.

    upstream: pkg/controllers/jobset_controller.go: reconcile (suspendJobs and
    resumeJobsIfNecessary get the active Jobs)
    """
    if (after.kind.group, after.kind.kind) != (GROUP, KIND):
        return []
    was, suspend = (mapping(one.value, "spec").get("suspend") is True for one in (before, after))
    if was == suspend:
        return []
    return [
        replace(
            job, content={**job.value, "spec": {**mapping(job.value, "spec"), "suspend": suspend}}
        )
        for job in inventory.of_kind(JOB)
        if job.is_controlled_by(after) and not is_finished(job.as_view(Job))
    ]


def changed_otherwise(before: Manifest, after: Manifest) -> bool:
    """Return whether a change of a JobSet changes a field of its spec besides `suspend`."""
    if (after.kind.group, after.kind.kind) != (GROUP, KIND):
        return False
    was, now = ({**mapping(one.value, "spec"), "suspend": None} for one in (before, after))
    return was != now


def _refuse_without_index(one: Manifest, replicated: _ReplicatedJob, path: str) -> None:
    """Raise InputError if the pods of `replicated` have no completion indexes.

    `replicated` has an exclusive topology. JobSet's webhook refuses all pods of such a Job if it
    has no pod with the index 0.

    upstream: pkg/webhooks/pod_webhook.go: ValidateCreate
    """
    if replicated.template.spec.completion_mode not in {None, "Indexed"}:
        problem = (
            "with an exclusive topology, JobSet's webhook refuses all pods of a Job whose "
            "completionMode is not Indexed"
        )
        raise one.refuse(problem, field=f"{path}.template.spec.completionMode")


def _service(namespace: str, name: str, set_name: str) -> Json:
    """Return the headless Service of the JobSet `set_name`.

    The scheduler needs the Service, because by default it spreads the pods of a Service over nodes
    and zones.
    """
    return {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "None", "selector": {f"{_LABELS}/jobset-name": set_name}},
    }


def _coordinator_mark(set_name: str, spec: _Spec, subdomain: str) -> dict[str, str]:
    """Return the label that names the coordinator's endpoint; {} if there is no coordinator.

    The endpoint is a pod of the JobSet `set_name` with `spec`, in the network domain `subdomain`.
    """
    found = spec.coordinator
    if found is None:
        return {}
    pod = f"{set_name}-{found.replicated_job}-{found.job_index}-{found.pod_index}"
    return {f"{_LABELS}/coordinator": f"{pod}.{subdomain}"}


def _valid_spec(one: Manifest) -> _Spec:
    try:
        spec = decode_strictly(Document(one.source, one.value), _JobSet).spec
    except InputError as cause:
        raise one.refuse(cause.problem, field=cause.field) from None
    total = sum(replicated.replicas for replicated in spec.replicated_jobs)
    if total > _JOBS_MAX:
        raise one.refuse(f"{total} Jobs are more than {_JOBS_MAX}", field="spec.replicatedJobs")
    names = set[str]()
    for at, replicated in enumerate(spec.replicated_jobs):
        path = f"spec.replicatedJobs[{at}]"
        if replicated.name in names:
            raise one.refuse(f"{replicated.name!r} appears twice", field=f"{path}.name")
        for what, longest in _longest_names(one, replicated):
            for wrong in dns_1035_problems(longest):
                problem = f"the name {longest} of its {what} is invalid: {wrong}"
                raise one.refuse(problem, field=f"{path}.name")
        for wrong in dns_1035_problems(replicated.group_name):
            raise one.refuse(wrong, field=f"{path}.groupName")
        for place, needed in enumerate(replicated.depends_on):
            if needed.name not in names:
                problem = f"{needed.name!r} is not an earlier replicated job"
                raise one.refuse(problem, field=f"{path}.dependsOn[{place}].name")
        names.add(replicated.name)
    _check_targets(one, spec, names)
    _check_coordinator(one, spec)
    return spec


def _check_targets(one: Manifest, spec: _Spec, names: Collection[str]) -> None:
    """Raise InputError if a policy of `one` names a replicated job that is not in `names`.

    `one` is the JobSet with `spec`.
    """
    targets: list[tuple[str, tuple[str, ...]]] = []
    if spec.success_policy is not None:
        targets.append(("spec.successPolicy", spec.success_policy.target_replicated_jobs))
    if spec.failure_policy is not None:
        for at, rule in enumerate(spec.failure_policy.rules):
            targets.append((f"spec.failurePolicy.rules[{at}]", rule.target_replicated_jobs))
    for path, wanted in targets:
        for at, name in enumerate(wanted):
            if name not in names:
                field = f"{path}.targetReplicatedJobs[{at}]"
                raise one.refuse(f"there is no replicated job {name!r}", field=field)


def _longest_names(one: Manifest, replicated: _ReplicatedJob) -> Iterator[tuple[str, str]]:
    """Yield ("Job", name) and ("pod", name): the longest names of the Jobs and pods."""
    job = f"{one.ref.name}-{replicated.name}-{max(replicated.replicas - 1, 0)}"
    yield "Job", job
    if (indexes := replicated.template.spec.indexes) is not None:
        yield "pod", f"{job}-{max(indexes - 1, 0)}-abcde"  # a random suffix of this length


def _check_coordinator(one: Manifest, spec: _Spec) -> None:
    """Raise InputError if no Job of the JobSet `one` has the pod that is the coordinator."""
    if (found := spec.coordinator) is None:
        return
    name = found.replicated_job
    job = next((each for each in spec.replicated_jobs if each.name == name), None)
    if job is None:
        problem = f"there is no replicated job {name!r}"
        raise one.refuse(problem, field="spec.coordinator.replicatedJob")
    if found.job_index >= job.replicas:
        problem = f"{found.job_index} is not below the {job.replicas} replicas of {name}"
        raise one.refuse(problem, field="spec.coordinator.jobIndex")
    indexes = job.template.spec.indexes
    if indexes is None:
        problem = f"{name} must have completions and the completionMode Indexed"
        raise one.refuse(problem, field="spec.coordinator.replicatedJob")
    if found.pod_index >= indexes:
        problem = f"{found.pod_index} is not below the {indexes} completions of {name}"
        raise one.refuse(problem, field="spec.coordinator.podIndex")


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def _job(
    given: _JobTemplate, spec: Json, marks: dict[str, str], annotations: dict[str, str]
) -> Json:
    """Return a Job without a name, made from the Job template `given`.

    `spec` is the spec of the template as it is written in the JobSet. The Job and its pods have the
    labels `marks`, and the annotations `marks` and `annotations`.
    """
    pods = given.spec.template
    template = {
        "metadata": _marked(pods.metadata, marks, annotations),
        "spec": {"restartPolicy": "OnFailure", **pods.spec},
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": _marked(given.metadata, marks, annotations),
        "spec": {"completionMode": "Indexed", **spec, "template": template},
    }


def _marked(given: TemplateMetadata, marks: dict[str, str], annotations: dict[str, str]) -> Json:
    return {
        "labels": given.labels | marks,
        "annotations": given.annotations | marks | annotations,
    }


def job_set_notes(job_sets: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note about the `job_sets` for which the change creates Jobs."""
    if job_sets:
        sets = "JobSet" if len(job_sets) == 1 else "JobSets"
        yield (
            f"For {sets} {listed([one.ref.key for one in job_sets], 2)}, all Jobs are created at "
            "once, because the JobSet controller is not simulated. The fields dependsOn, "
            "startupPolicy, successPolicy and failurePolicy have no effect."
        )
