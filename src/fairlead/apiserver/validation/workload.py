"""Workloads: how many pods of which template, and whether the selector finds them.

upstream: pkg/apis/apps/validation/validation.go, pkg/apis/batch/validation/validation.go,
pkg/apis/core/validation/validation.go:ValidateReplicationControllerSpec
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import map_selector, selector_matches
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    non_negative,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import check_labels
from fairlead.apiserver.validation.pod import (
    check_new_pod_spec,
    check_pod_spec,
    check_runnable_pod_spec,
)
from fairlead.apiserver.validation.selector import check_label_selector

Replicated = Deployment | ReplicaSet | StatefulSet | DaemonSet

MISMATCH: Final = "`selector` does not match template `labels`"
_TEMPLATE: Final = "spec.template"


def check_workload(workload: Replicated) -> Causes:
    """A stored Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    yield from non_negative("spec.replicas", workload.spec.replicas)
    yield from check_label_selector("spec.selector", workload.spec.selector)
    yield from _check_template(workload.spec.template)


def check_new_workload(workload: Replicated) -> Causes:
    """What holds for a new one besides."""
    template = workload.spec.template
    yield from _check_selector(workload)
    yield from _check_runs_for_ever(template, _pods_maker(workload))
    yield from _check_new_template(template)


def _check_selector(workload: Replicated) -> Causes:
    """A selector that is there, means something, and finds the template's pods.

    Upstream has four copies of this rule; they differ in what they forgot.
    """
    selector = workload.spec.selector
    if selector is None and not isinstance(workload, DaemonSet):
        yield required("spec.selector")
    if selector == LabelSelector():
        kind = "deployment" if isinstance(workload, ReplicaSet) else type(workload).__name__.lower()
        yield invalid("spec.selector", {}, f"empty selector is invalid for {kind}")
    if any(True for _ in check_label_selector("", selector)):
        if isinstance(workload, Deployment | ReplicaSet):
            yield invalid("spec.selector", selector, "invalid label selector")
        elif isinstance(workload, StatefulSet):
            yield invalid("spec.selector", selector)
    else:
        yield from _check_matches(selector, workload.spec.template)


def _pods_maker(workload: Replicated) -> str:
    """The kind whose rules for pods hold; a Deployment's pods are its ReplicaSet's."""
    return "ReplicaSet" if isinstance(workload, Deployment) else type(workload).__name__


def check_replication_controller(controller: ReplicationController) -> Causes:
    """A stored ReplicationController."""
    yield from non_negative("spec.replicas", controller.spec.replicas)
    yield from check_labels("spec.selector", controller.spec.selector)
    yield from _check_template(controller.spec.template)


def check_new_replication_controller(controller: ReplicationController) -> Causes:
    """What holds for a new one besides; the selector is its template's labels by default."""
    spec = controller.spec
    if not spec.template:
        if not spec.selector:
            yield required("spec.selector")
        yield required(_TEMPLATE)
        return
    if spec.selector:
        yield from _check_matches(map_selector(spec.selector), spec.template)
    elif not _template_labels(spec.template):
        yield required("spec.selector")
    yield from _check_runs_for_ever(spec.template, "ReplicationController")
    yield from _check_new_template(spec.template)


def check_job(job: Job) -> Causes:
    """A stored Job."""
    yield from non_negative("spec.parallelism", job.spec.parallelism)
    if job.spec.completions is not None:
        yield from non_negative("spec.completions", job.spec.completions)
    if job.spec.backoff_limit is not None:
        yield from non_negative("spec.backoffLimit", job.spec.backoff_limit)
    yield from _check_template(job.spec.template)


def check_new_job(job: Job) -> Causes:
    """What holds for a new one besides; its selector is the server's."""
    template = job.spec.template
    if template.get("spec", {}).get("restartPolicy", "Always") == "Always":
        yield required(f"{_TEMPLATE}.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from _check_new_template(template)


def check_runnable_template(template: Json) -> Causes:
    """What a kubelet needs to run the pods of a workload."""
    pod = _decoded(template)
    if isinstance(pod, Pod):
        yield from check_runnable_pod_spec(f"{_TEMPLATE}.spec", pod.spec)


def check_any_template(field: str, template: Json) -> Causes:
    """All that holds for a new template that somebody shall run; `field` is where it stands."""
    spec = {key: value for key, value in (template.get("spec") or {}).items() if value is not None}
    pod = _decoded({**template, "spec": spec})
    if isinstance(pod, Cause):
        yield pod
        return
    yield from check_labels(f"{field}.labels", pod.metadata.labels)
    yield from check_pod_spec(f"{field}.spec", pod.spec)
    yield from check_new_pod_spec(f"{field}.spec", pod.spec)
    yield from check_runnable_pod_spec(f"{field}.spec", pod.spec)


def _check_template(template: Json) -> Causes:
    """The pods that the template would make, as far as they can be made sense of."""
    pod = _decoded(template)
    if isinstance(pod, Cause):
        yield pod
        return
    yield from check_labels(f"{_TEMPLATE}.labels", pod.metadata.labels)
    yield from check_pod_spec(f"{_TEMPLATE}.spec", pod.spec)


def _check_new_template(template: Json) -> Causes:
    pod = _decoded(template)
    if isinstance(pod, Pod):
        yield from check_new_pod_spec(f"{_TEMPLATE}.spec", pod.spec)


def _check_runs_for_ever(template: Json, kind: str) -> Causes:
    """Pods of most workloads have no end."""
    pod = _decoded(template)
    if isinstance(pod, Cause):
        return
    if pod.spec.restart_policy != "Always":
        field = f"{_TEMPLATE}.spec.restartPolicy"
        yield not_supported(field, pod.spec.restart_policy, ("Always",))
    if pod.spec.active_deadline_seconds is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{_TEMPLATE}.spec.activeDeadlineSeconds", why)


def _check_matches(selector: LabelSelector | None, template: Json) -> Causes:
    """A workload that does not find its own pods would make them for ever."""
    labels = _template_labels(template)
    if not selector_matches(selector, labels):
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels or None, MISMATCH)


def _template_labels(template: Json) -> dict[str, str]:
    pod = _decoded(template)
    return pod.metadata.labels if isinstance(pod, Pod) else {}


def _decoded(template: Json) -> Pod | Cause:
    try:
        return decode_as(Pod, template)
    except DecodeError as cause:
        return invalid(f"{_TEMPLATE}.{cause.field}", "", cause.problem)
