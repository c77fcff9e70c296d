"""The defaults for simulations: only the defaults that controllers or the scheduler read.

Apart from these defaults, a simulated cluster keeps objects as scenario authors write them, so that
reports and snapshots stay short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.facts import default_of
from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.apiserver.defaulting.amount import with_allocatable
from fairlead.apiserver.defaulting.definition import with_definition_defaults
from fairlead.apiserver.defaulting.fill import filled, replaced
from fairlead.apiserver.defaulting.pod import on_host, with_requests
from fairlead.apiserver.defaulting.pod_resources import with_pod_level_requests
from fairlead.apiserver.defaulting.workload import (
    COMPLETION_MODE,
    PARALLELISM,
    backoff_limit,
    with_completions,
    with_metrics_and_rules,
    with_own_name,
)
from fairlead.apiserver.kind import (
    CRON_JOB,
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SERVICE,
    STATEFUL_SET,
    Kind,
)


def _defaults(type_name: str, *names: str) -> Json:
    return {name: default_of(type_name, name) for name in names}


_POD_SPEC: Final = _defaults(
    "core.v1.PodSpec", "restartPolicy", "terminationGracePeriodSeconds", "schedulerName"
)
_PORT: Final = _defaults("core.v1.ContainerPort", "protocol")
_PRIORITY_CLASS: Final = {
    "value": 0,
    **_defaults("scheduling.v1.PriorityClass", "preemptionPolicy"),
}
_JOB: Final = {"parallelism": PARALLELISM, "completionMode": COMPLETION_MODE}
_AUTOSCALER: Final = _defaults("autoscaling.v2.HorizontalPodAutoscalerSpec", "minReplicas")


def with_defaults(kind: Kind, obj: Json) -> Json:
    """Return `obj` with the defaults of its kind, or `obj` itself if they change nothing.

    Raises QuantityError if a pod has pod-level resources and a container has a malformed quantity.
    """
    rule = _RULES.get(kind.resource)
    return rule(obj) if rule else obj


def _pod(pod: Json) -> Json:
    spec = filled(pod.get("spec", {}), _POD_SPEC)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec = replaced(spec, "terminationGracePeriodSeconds", 1)
    is_on_host = spec.get("hostNetwork", False)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec = replaced(spec, key, _containers(spec[key], is_on_host=is_on_host))
    if "resources" in spec:
        spec = with_pod_level_requests(spec)
    status = filled(pod.get("status", {}), {"phase": "Pending"})
    return replaced(replaced(pod, "spec", spec), "status", status)


def _containers(containers: list[Json], *, is_on_host: bool) -> list[Json]:
    made = [_container(container, is_on_host=is_on_host) for container in containers]
    same = all(new is old for new, old in zip(made, containers, strict=True))
    return containers if same else made


def _container(container: Json, *, is_on_host: bool) -> Json:
    container = with_requests(container)
    if container.get("ports"):
        ports = [filled(port, _PORT) for port in container["ports"]]
        if is_on_host:
            ports = [on_host(port) for port in ports]
        if ports != container["ports"]:
            container = replaced(container, "ports", ports)
    return container


def _node(node: Json) -> Json:
    node = _spec({})(node)
    return replaced(node, "status", with_allocatable(node["status"])) if "status" in node else node


def _namespace(namespace: Json) -> Json:
    status = filled(namespace.get("status", {}), _defaults("core.v1.NamespaceStatus", "phase"))
    return replaced(with_own_name(namespace), "status", status)


def _spec(defaults: Json) -> Callable[[Json], Json]:
    """Return a rule that sets `defaults` in the spec of an object."""

    def rule(obj: Json) -> Json:
        return replaced(obj, "spec", filled(obj.get("spec", {}), defaults))

    return rule


def _replication_controller(obj: Json) -> Json:
    replicas = _defaults("core.v1.ReplicationControllerSpec", "replicas")
    spec = filled(obj.get("spec", {}), replicas)
    if not spec.get("selector"):
        spec = {**spec, "selector": _template_labels(spec.get("template", {}))}
    return replaced(obj, "spec", spec)


def _template_labels(template: Json) -> dict[str, str]:
    try:
        return decode_as(Pod, template).metadata.labels
    except DecodeError:
        return {}  # Validation reports the malformed field.


def _job(obj: Json) -> Json:
    spec = with_completions(obj.get("spec", {}))
    return replaced(obj, "spec", filled(spec, {**_JOB, "backoffLimit": backoff_limit(spec)}))


def _autoscaler(obj: Json) -> Json:
    spec = filled(obj.get("spec", {}), _AUTOSCALER)
    return replaced(obj, "spec", with_metrics_and_rules(spec))


_RULES: Final[dict[str, Callable[[Json], Json]]] = {
    POD.resource: _pod,
    NODE.resource: _node,
    NAMESPACE.resource: _namespace,
    PRIORITY_CLASS.resource: lambda obj: filled(obj, _PRIORITY_CLASS),
    REPLICATION_CONTROLLER.resource: _replication_controller,
    DEPLOYMENT.resource: _spec(_defaults("apps.v1.DeploymentSpec", "replicas")),
    REPLICA_SET.resource: _spec(_defaults("apps.v1.ReplicaSetSpec", "replicas")),
    STATEFUL_SET.resource: _spec(
        _defaults("apps.v1.StatefulSetSpec", "replicas", "podManagementPolicy")
    ),
    DAEMON_SET.resource: _spec({}),
    PERSISTENT_VOLUME_CLAIM.resource: _spec({}),
    RESOURCE_QUOTA.resource: _spec({}),
    SERVICE.resource: _spec({}),
    JOB.resource: _job,
    CRON_JOB.resource: _spec(_defaults("batch.v1.CronJobSpec", "suspend")),
    HORIZONTAL_POD_AUTOSCALER.resource: _autoscaler,
    CUSTOM_RESOURCE_DEFINITION.resource: with_definition_defaults,
}
