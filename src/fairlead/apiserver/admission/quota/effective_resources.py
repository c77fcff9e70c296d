"""Effective resources: what containers cost while they are being resized.

Until a kubelet has made a container as small as it should be, it costs what it has; one that is to
become larger costs that at once, unless its node can never give it that.

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
    """The spec of `pod`, with the resources that count."""
    spec: Json = pod["spec"]
    status = pod.get("status") or {}
    is_infeasible = _is_infeasible(status)
    for part, said in _STATUSES:
        statuses = {
            one["name"]: one for one in status.get(said) or () if one.get("resources") is not None
        }
        if statuses and spec.get(part):
            containers = [
                _effective(one, statuses[one["name"]], is_infeasible=is_infeasible)
                if one["name"] in statuses and _lasts(part, one)
                else one
                for one in spec[part]
            ]
            spec = {**spec, part: containers}
    return spec


def _lasts(part: str, container: Json) -> bool:
    return part == "containers" or container.get("restartPolicy") == "Always"


def _effective(container: Json, status: Json, *, is_infeasible: bool) -> Json:
    wanted = {} if is_infeasible else container.get("resources") or {}
    has, allocated = status["resources"], status.get("allocatedResources")
    made = {
        "requests": _largest((wanted.get("requests"), has.get("requests"), allocated)),
        "limits": _largest((wanted.get("limits"), has.get("limits"))),
    }
    return {**container, "resources": made}


def _largest(lists: Iterable[Json | None]) -> Json:
    """By resource, the largest amount."""
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
