"""Computes status.qosClass of a pod.

Guaranteed if every container limits CPU and memory and requests the same amounts; BestEffort if no
container has either; Burstable otherwise. Pod-level resources, if set, replace those of the
containers.

upstream: pkg/apis/core/helper/qos/qos.go:ComputePodQOS
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import parse_quantity

_DECISIVE: Final = ("cpu", "memory")
_CONTAINERS: Final = ("containers", "initContainers")


def qos_class(spec: Json) -> str:
    """Return the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for resources in _resources(spec):
        limited = _amounts(resources, "limits")
        guaranteed = guaranteed and len(limited) == len(_DECISIVE)
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
    """Return the amounts of cpu and memory in nanos; a request of 0 counts as no request."""
    amounts = resources.get(of) or {}
    found = {name: parse_quantity(amounts[name]).nano for name in _DECISIVE if name in amounts}
    return {name: nano for name, nano in found.items() if nano > 0}
