"""Defaults of pods and pod templates.

A template gets the defaults of a pod's spec. Three defaults are set only in pods: requests derived
from limits, the defaults of pod-level resources, and enableServiceLinks.

upstream: pkg/apis/core/v1/defaults.go:SetDefaults_{Pod,PodSpec,Container,Volume},
pkg/apis/core/v1/conversion.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced
from fairlead.apiserver.defaulting.pod_resources import with_pod_level_requests

_CONTAINERS: Final = ("containers", "initContainers")


def _pod(pod: Json) -> Json:
    spec = filled(pod["spec"], {"enableServiceLinks": True})
    for key in _CONTAINERS:
        if spec.get(key):
            spec = replaced(spec, key, [with_requests(container) for container in spec[key]])
    if spec.get("resources"):
        spec = with_pod_level_requests(spec)
    status = filled(pod.get("status", {}), {"phase": "Pending"})
    return replaced(replaced(pod, "spec", spec), "status", status)


def with_requests(container: Json) -> Json:
    """Return `container`, in which the request of each resource defaults to its limit."""
    resources = container.get("resources", {})
    limits = resources.get("limits")
    if not limits:
        return container
    requests = filled(resources.get("requests", {}), limits)
    return replaced(container, "resources", replaced(resources, "requests", requests))


def _pod_spec(spec: Json) -> Json:
    spec = _with_account(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec = replaced(spec, "terminationGracePeriodSeconds", 1)
    if spec.get("hostNetwork"):
        for key in _CONTAINERS:
            if spec.get(key):
                spec = replaced(spec, key, [_on_host(container) for container in spec[key]])
    return spec


def _with_account(spec: Json) -> Json:
    """Return `spec` with the same account in serviceAccountName and serviceAccount.

    If both are set and differ, serviceAccount is replaced. If neither is set, `spec` is unchanged.
    """
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if not name:
        return spec
    if spec.get("serviceAccount") == name == spec.get("serviceAccountName"):
        return spec
    return {**spec, "serviceAccountName": name, "serviceAccount": name}


def _on_host(container: Json) -> Json:
    ports = container.get("ports")
    if not ports:
        return container
    return replaced(container, "ports", [on_host(port) for port in ports])


def on_host(port: Json) -> Json:
    """Return `port` with its hostPort defaulted to its containerPort.

    `port` belongs to a pod with hostNetwork.
    """
    if port.get("hostPort") or not port.get("containerPort"):
        return port
    return replaced(port, "hostPort", port["containerPort"])


def _container(container: Json) -> Json:
    if container.get("imagePullPolicy"):
        return container
    return {**container, "imagePullPolicy": pull_policy(container.get("image", ""))}


def pull_policy(image: str) -> str:
    """Return the default imagePullPolicy of `image`.

    The default is `Always` if the tag is `latest` or the image has neither tag nor digest,
    otherwise `IfNotPresent`.
    """
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if (tag and tag != "latest") or (digest and not tag) else "Always"


def _volume(volume: Json) -> Json:
    if all(value is None for key, value in volume.items() if key != "name"):
        return {**volume, "emptyDir": {}}
    return volume


def _image_volume(source: Json) -> Json:
    if source.get("pullPolicy"):
        return source
    return {**source, "pullPolicy": pull_policy(source.get("reference") or "")}


POD_RULES: Final[Mapping[str, Rule]] = {
    "v1.Pod": _pod,
    "v1.PodSpec": _pod_spec,
    "v1.Container": _container,
    "v1.EphemeralContainer": _container,
    "v1.Volume": _volume,
    "v1.ImageVolumeSource": _image_volume,
}
