"""Finds in-place resizes of pods, and describes the resizes that a kubelet defers.

A resize changes the requests in a pod's spec. If the new requests fit the pod's node, the kubelet
allocates them. The rules are the same as for the admission of a new pod (`pod_admission`). If the
new requests do not fit, the kubelet defers the resize. The pod gets the condition PodResizePending,
and the kubelet tries again when pods of the node change. The API server refuses a resize that can
never fit.

upstream: pkg/kubelet/allocation/allocation_manager.go:handlePodResourcesResize, canResizePod;
pkg/kubelet/events/pod_resize.go:PodResizePendingMsg
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Container, Pod, ResourceList
from fairlead.api.pods.facts import condition, is_sidecar
from fairlead.api.pods.requests import RESIZE_PENDING
from fairlead.engine.core.command import Condition
from fairlead.engine.kubelet.pod_admission import PodRejection

DEFERRED: Final = "Deferred"
RESIZE_DEFERRED: Final = "ResizeDeferred"  # the reason of the event


def is_resize(pod: Pod) -> bool:
    """Return whether containers of the running `pod` request more or less than is allocated."""
    return allocated_pod(pod).spec != pod.spec


def allocated_pod(pod: Pod) -> Pod:
    """Return `pod` with the requests that its kubelet has allocated to its containers."""
    # upstream: pkg/kubelet/allocation/allocation_manager.go:UpdatePodFromAllocation
    status = pod.status
    rows = (*status.container_statuses, *status.init_container_statuses)
    allocated = {row.name: row.allocated_resources for row in rows if row.resources is not None}
    spec = replace(
        pod.spec,
        containers=_with_requests(pod.spec.containers, allocated),
        init_containers=_with_requests(pod.spec.init_containers, allocated),
    )
    return replace(pod, spec=spec)


def _with_requests(
    containers: Iterable[Container], allocated: dict[str, ResourceList]
) -> tuple[Container, ...]:
    return tuple(
        replace(one, resources=replace(one.resources, requests=allocated[one.name]))
        if one.name in allocated
        else one
        for one in containers
    )


def deferral_of(pod: Pod) -> Condition | None:
    """Return the condition of the deferred resize of `pod`; None if no resize is deferred."""
    found = condition(pod, RESIZE_PENDING)
    if found is None or found.reason != DEFERRED:
        return None
    return Condition(RESIZE_PENDING, "True", DEFERRED, found.message)


def deferred(why: PodRejection) -> Condition:
    """Return the condition PodResizePending of a pod whose resize does not fit on its node now."""
    return Condition(RESIZE_PENDING, "True", DEFERRED, why.message)


def deferral_note(pod: Pod, why: PodRejection) -> str:
    """Return the message of the event ResizeDeferred."""
    sidecars = [_amounts(one) for one in pod.spec.init_containers if is_sidecar(one)]
    details: Json = {
        **({"initContainers": sidecars} if sidecars else {}),
        "containers": [_amounts(one) for one in pod.spec.containers],
        "generation": pod.metadata.generation,
        "error": why.message,
    }
    return f"Pod resize {DEFERRED}: {msgspec.json.encode(details).decode()}"


def _amounts(container: Container) -> Json:
    given = {"limits": container.resources.limits, "requests": container.resources.requests}
    return {"name": container.name, "resources": {key: one for key, one in given.items() if one}}
