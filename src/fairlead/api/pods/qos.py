"""Computes status.qosClass of a pod.

The class is Guaranteed if every container limits cpu and memory and requests the same amounts. The
class is BestEffort if no container has requests or limits of cpu or memory. Otherwise, the class is
Burstable. If a pod has pod-level resources, they are used instead of the resources of the
containers.

upstream: pkg/apis/core/helper/qos/qos.go:ComputePodQOS
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import Container, Pod
from fairlead.api.quantity import parse_quantity

QOS_CLASSES: Final = ("BestEffort", "Burstable", "Guaranteed")

_SUPPORTED_QOS_COMPUTE_RESOURCES: Final = ("cpu", "memory")
_CONTAINERS: Final = ("containers", "initContainers")


def qos_class(spec: Json) -> str:
    """Return the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for resources in _resources(spec):
        limited = _amounts(resources, "limits")
        guaranteed = guaranteed and len(limited) == len(_SUPPORTED_QOS_COMPUTE_RESOURCES)
        for total, part in ((requests, _amounts(resources, "requests")), (limits, limited)):
            for name, nano in part.items():
                total[name] = total.get(name, 0) + nano
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _resources(spec: Json) -> Iterator[Json]:
    own = spec.get("resources")
    if own and (own.get("requests") or own.get("limits")):
        yield own
        return
    for key in _CONTAINERS:
        for container in spec.get(key) or ():
            yield container.get("resources") or {}


def _amounts(resources: Json, of: str) -> dict[str, int]:
    """Return the nonzero amounts of cpu and memory in nanos.

    `of` is the field of `resources` to read: `requests` or `limits`.
    """
    amounts = resources.get(of) or {}
    found = {
        name: parse_quantity(amounts[name]).nano
        for name in _SUPPORTED_QOS_COMPUTE_RESOURCES
        if name in amounts
    }
    return {name: nano for name, nano in found.items() if nano > 0}


def qos_class_of(pod: Pod) -> str:
    """Return the QoS class of `pod`, one of QOS_CLASSES."""
    return qos_class(_decisive_part(pod))


def _decisive_part(pod: Pod) -> Json:
    """Return the part of the pod's spec that determines its QoS class."""

    def parts(containers: Sequence[Container]) -> list[Json]:
        return [
            {"resources": {"requests": one.resources.requests, "limits": one.resources.limits}}
            for one in containers
        ]

    spec = pod.spec
    found: dict[str, Any] = {
        "containers": parts(spec.containers),
        "initContainers": parts(spec.init_containers),
    }
    if spec.resources is not None:
        resources = spec.resources
        found["resources"] = {"requests": resources.requests, "limits": resources.limits}
    return found
