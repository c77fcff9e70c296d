"""Defaults: what a stored object says although its author did not.

Only what some rule of Fairlead reads is filled in. Values are shared, never mutated: where
nothing is missing, the same object comes back.

upstream: pkg/apis/{core,apps,batch,scheduling}/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.apiserver.defaulting.definition import with_definition_defaults
from fairlead.apiserver.kind import (
    CRON_JOB,
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.pod_resources import with_pod_level_requests

_OWN_NAME: Final = "kubernetes.io/metadata.name"
_POD_SPEC: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
}


def with_defaults(kind: Kind, obj: Json) -> Json:
    """`obj`, of its kind's form, with its kind's defaults.

    Raises QuantityError where pod-level sums need a quantity that is none.
    """
    rule = _RULES.get(kind.resource)
    return rule(obj) if rule else obj


def _filled(obj: Json, defaults: Mapping[str, Any]) -> Json:
    """`obj` with those of `defaults` that it lacks."""
    missing = {key: value for key, value in defaults.items() if key not in obj}
    return {**obj, **missing} if missing else obj


def _with(obj: Json, key: str, value: Any) -> Json:
    """`obj` with `key` set, itself when it is set so already."""
    return obj if obj.get(key) is value else {**obj, key: value}


def _pod(pod: Json) -> Json:
    spec = _filled(pod.get("spec", {}), _POD_SPEC)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec = _with(spec, "terminationGracePeriodSeconds", 1)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec = _with(spec, key, _containers(spec[key], host=spec.get("hostNetwork", False)))
    if "resources" in spec:
        spec = with_pod_level_requests(spec)
    status = _filled(pod.get("status", {}), {"phase": "Pending"})
    return _with(_with(pod, "spec", spec), "status", status)


def _containers(containers: list[Json], *, host: bool) -> list[Json]:
    filled = [_container(container, host=host) for container in containers]
    same = all(new is old for new, old in zip(filled, containers, strict=True))
    return containers if same else filled


def _container(container: Json, *, host: bool) -> Json:
    """Limits ask for as much; ports are TCP, and on the host's network they are the host's."""
    resources = container.get("resources", {})
    limits = resources.get("limits")
    if limits:
        requests = _filled(resources.get("requests", {}), limits)
        container = _with(container, "resources", _with(resources, "requests", requests))
    if container.get("ports"):
        ports = [_port(port, host=host) for port in container["ports"]]
        if ports != container["ports"]:
            container = _with(container, "ports", ports)
    return container


def _port(port: Json, *, host: bool) -> Json:
    port = _filled(port, {"protocol": "TCP"})
    if host and not port.get("hostPort") and "containerPort" in port:
        return _with(port, "hostPort", port["containerPort"])
    return port


def _node(node: Json) -> Json:
    status = node.get("status", {})
    if "capacity" in status and "allocatable" not in status:
        return _with(node, "status", {**status, "allocatable": status["capacity"]})
    return node


def _namespace(namespace: Json) -> Json:
    meta = namespace.get("metadata", {})
    labels = meta.get("labels", {})
    if meta.get("name") and labels.get(_OWN_NAME) != meta["name"]:
        labels = {**labels, _OWN_NAME: meta["name"]}
        namespace = _with(namespace, "metadata", {**meta, "labels": labels})
    status = _filled(namespace.get("status", {}), {"phase": "Active"})
    return _with(namespace, "status", status)


def _priority_class(obj: Json) -> Json:
    return _filled(obj, {"value": 0, "preemptionPolicy": "PreemptLowerPriority"})


def _workload(**defaults: Any) -> Callable[[Json], Json]:
    """The rule that fills `defaults` into spec."""

    def rule(obj: Json) -> Json:
        return _with(obj, "spec", _filled(obj.get("spec", {}), defaults))

    return rule


def _replication_controller(obj: Json) -> Json:
    spec = _filled(obj.get("spec", {}), {"replicas": 1})
    if not spec.get("selector"):
        spec = {**spec, "selector": _template_labels(spec.get("template", {}))}
    return _with(obj, "spec", spec)


def _template_labels(template: Json) -> dict[str, str]:
    try:
        return decode_as(Pod, template).metadata.labels
    except DecodeError:
        return {}  # the rules for templates say where it stands


def _job(obj: Json) -> Json:
    """A Job without completions and parallelism runs one pod; parallelism alone is a queue."""
    spec = obj.get("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec = {**spec, "completions": 1}
    filled = _filled(spec, {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed"})
    return _with(obj, "spec", filled)


_RULES: Final[dict[str, Callable[[Json], Json]]] = {
    POD.resource: _pod,
    NODE.resource: _node,
    NAMESPACE.resource: _namespace,
    PRIORITY_CLASS.resource: _priority_class,
    REPLICATION_CONTROLLER.resource: _replication_controller,
    DEPLOYMENT.resource: _workload(replicas=1),
    REPLICA_SET.resource: _workload(replicas=1),
    STATEFUL_SET.resource: _workload(replicas=1, podManagementPolicy="OrderedReady"),
    DAEMON_SET.resource: _workload(),
    JOB.resource: _job,
    CRON_JOB.resource: _workload(suspend=False),
    CUSTOM_RESOURCE_DEFINITION.resource: with_definition_defaults,
}
