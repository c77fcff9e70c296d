"""The resources a quota charges for a pod that is being resized in place.

Until the kubelet has resized a container, it is charged the maximum of desired, allocated and
actual resources. An infeasible resize is not charged.

upstream: component-helpers/resource/helpers.go:determineEffectiveRequests,
determineEffectiveLimits
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import parse_quantity

_STATUSES: Final = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
)


def effective_spec(pod: Json) -> Json:
    """The spec of `pod` with the resources to charge."""
    spec: Json = pod["spec"]
    status = pod.get("status") or {}
    is_infeasible = _is_infeasible(status)
    for part, status_key in _STATUSES:
        statuses = {
            one["name"]: one
            for one in status.get(status_key) or ()
            if one.get("resources") is not None
        }
        if statuses and spec.get(part):
            containers = [
                _effective_container(one, statuses[one["name"]], is_infeasible=is_infeasible)
                if one["name"] in statuses and _keeps_running(part, one)
                else one
                for one in spec[part]
            ]
            spec = {**spec, part: containers}
    return spec


def _keeps_running(part: str, container: Json) -> bool:
    return part == "containers" or container.get("restartPolicy") == "Always"


def _effective_container(container: Json, status: Json, *, is_infeasible: bool) -> Json:
    desired = {} if is_infeasible else container.get("resources") or {}
    actual, allocated = status["resources"], status.get("allocatedResources")
    resources = {
        "requests": _maximum((desired.get("requests"), actual.get("requests"), allocated)),
        "limits": _maximum((desired.get("limits"), actual.get("limits"))),
    }
    return {**container, "resources": resources}


def _maximum(lists: Iterable[Json | None]) -> Json:
    """The maximum by resource."""
    found: Json = {}
    for one in lists:
        for name, text in (one or {}).items():
            if name not in found or parse_quantity(text) > parse_quantity(found[name]):
                found[name] = text
    return found


def _is_infeasible(status: Json) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False
