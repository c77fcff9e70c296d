"""Defaults of pod-level resources (spec.resources).

If the pod has any pod-level limit or request, missing pod-level hugepages limits get defaults. The
default is the sum of the containers' limits for the same page size. A limit gets no default if the
pod has a pod-level request for that page size.

Missing pod-level requests get a default only if the pod has pod-level limits. A request of cpu or
memory defaults to the sum of the containers' requests. If no container requests the resource, the
pod-level request defaults to the pod-level limit. A request of hugepages, which cannot be
overcommitted, always defaults to the pod-level limit.

upstream: pkg/apis/core/v1/defaults.go:defaultHugePagePodLimits, defaultPodRequests
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.requests import CPU, HUGEPAGES_PREFIX, MEMORY, pod_requests

_CONTAINER_LISTS: Final = ("containers", "initContainers")


def with_pod_level_requests(spec: Json) -> Json:
    """Return the pod spec `spec` with defaults for its pod-level limits and requests.

    `spec` must have the field `resources`. The defaults of the containers' requests must already be
    set. Raises QuantityError if a container has a malformed quantity.
    """
    resources = spec["resources"]
    limits = resources.get("limits", {})
    requests = resources.get("requests", {})
    if limits or requests:
        limits = {**_hugepages_limits(spec, requests), **limits}
    if limits:
        aggregated = _aggregated(spec, "requests")
        overcommittable = {name: text for name, text in aggregated.items() if name in (CPU, MEMORY)}
        rest = {name: text for name, text in limits.items() if is_supported(name)}
        requests = {**rest, **overcommittable, **requests}
    filled = {"requests": requests, "limits": limits}
    complete = {**resources, **{key: value for key, value in filled.items() if value}}
    return spec if complete == resources else {**spec, "resources": complete}


def is_supported(resource: str) -> bool:
    """Return whether `resource` is supported at the pod level."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX)


def _hugepages_limits(spec: Json, pod_level_requests: Json) -> Json:
    """Return the sums of the containers' hugepages limits.

    Page sizes for which the pod has a pod-level request are left out.
    """
    return {
        name: text
        for name, text in _aggregated(spec, "limits").items()
        if name.startswith(HUGEPAGES_PREFIX) and name not in pod_level_requests
    }


def _aggregated(spec: Json, of: str) -> Json:
    """Return the total "requests" or "limits" of all containers; `of` says which."""
    lists = {key: [_requesting(one, of) for one in spec.get(key) or ()] for key in _CONTAINER_LISTS}
    amounts = pod_requests(decode_as(Pod, {"spec": lists}))
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}


def _requesting(container: Json, of: str) -> Json:
    """Return `container` without limits; its `requests` or `limits` (`of`) become its requests."""
    return {**container, "resources": {"requests": container.get("resources", {}).get(of, {})}}
