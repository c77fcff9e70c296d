"""Conversion: kinds that show in one form what is stored in another.

Events of both groups are the same objects, and so are HorizontalPodAutoscalers of both versions.
What is stored is the form of `Kind.stored_as`; a kind that is stored as it is shown passes
unchanged. Versions of a custom resource differ in their name alone.

upstream: pkg/apis/events/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.apiserver.kind import Kind

Json = dict[str, Any]
Form = Callable[[Json], Json]

_EVENT_FIELDS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_EVENT_FIELDS: Final = {new: old for old, new in _EVENT_FIELDS.items()}
# What one form writes even where it is empty, and the other leaves out.
_EMPTY_IN_CORE: Final = ("reportingComponent", "reportingInstance")
_USED: Final = "targetCPUUtilizationPercentage"
_OTHER_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"


def is_converted(kind: Kind) -> bool:
    """Whether objects of `kind` are stored in another form than they are shown in."""
    return kind.stored_as != kind.api_version


def shown(kind: Kind, obj: Json) -> Json:
    """A stored object as `kind` shows it."""
    if not is_converted(kind):
        return obj
    show, _ = _CONVERSIONS.get((kind.api_version, kind.kind), _AS_IT_IS)
    return _named(show(obj), kind.api_version)


def stored(kind: Kind, obj: Json) -> Json:
    """An object of `kind` as it is stored."""
    if not is_converted(kind):
        return obj
    _, store = _CONVERSIONS.get((kind.api_version, kind.kind), _AS_IT_IS)
    return _named(store(obj), kind.stored_as)


def _named(obj: Json, api_version: str) -> Json:
    return {**obj, "apiVersion": api_version}


def _renamed(obj: Json, names: Mapping[str, str]) -> Json:
    return {names.get(key, key): value for key, value in obj.items()}


def _new_event(event: Json) -> Json:
    made = _renamed(event, _EVENT_FIELDS)
    for name in ("reportingController", "reportingInstance"):
        if not made.get(name):
            made.pop(name, None)
    return made


def _core_event(event: Json) -> Json:
    return dict.fromkeys(_EMPTY_IN_CORE, "") | _renamed(event, _CORE_EVENT_FIELDS)


def _old_autoscaler(autoscaler: Json) -> Json:
    """v1: the use of CPU has a field of its own, all else is in annotations."""
    spec = dict(autoscaler.get("spec") or {})
    status = {"currentReplicas": 0, "desiredReplicas": 0, **(autoscaler.get("status") or {})}
    notes: dict[str, Any] = {_BEHAVIOR: spec.pop("behavior", None)}
    metrics = spec.pop("metrics", None) or []
    used = next((metric for metric in metrics if _cpu_target(metric) is not None), None)
    if used is not None:
        spec[_USED] = _cpu_target(used)
    notes[_OTHER_METRICS] = [metric for metric in metrics if metric is not used]
    notes[_CONDITIONS] = status.pop("conditions", None)
    current = _cpu_use(status.pop("currentMetrics", None) or [])
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    return _annotated({**autoscaler, "spec": spec, "status": status}, notes)


def _new_autoscaler(autoscaler: Json) -> Json:
    """v2: the use of CPU is a metric like others."""
    meta = dict(autoscaler.get("metadata") or {})
    notes = dict(meta.get("annotations") or {})
    spec, status = dict(autoscaler.get("spec") or {}), dict(autoscaler.get("status") or {})
    metrics = json.loads(notes.pop(_OTHER_METRICS, "[]"))
    used = spec.pop(_USED, None)
    if used is not None:
        metrics = [_cpu_metric(used), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if _BEHAVIOR in notes:
        spec["behavior"] = json.loads(notes.pop(_BEHAVIOR))
    if _CONDITIONS in notes:
        status["conditions"] = json.loads(notes.pop(_CONDITIONS))
    status.pop("currentCPUUtilizationPercentage", None)
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    return {**autoscaler, "metadata": meta, "spec": spec, "status": status}


def _annotated(autoscaler: Json, notes: Mapping[str, Any]) -> Json:
    written = {
        key: json.dumps(value, separators=(",", ":")) for key, value in notes.items() if value
    }
    if not written:
        return autoscaler
    meta = autoscaler.get("metadata") or {}
    annotations = {**(meta.get("annotations") or {}), **written}
    return {**autoscaler, "metadata": {**meta, "annotations": annotations}}


def _cpu_target(metric: Json) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    used: int | None = (resource.get("target") or {}).get("averageUtilization")
    return used


def _cpu_use(metrics: list[Json]) -> int | None:
    for metric in metrics:
        resource = metric.get("resource") or {}
        if metric.get("type") == "Resource" and resource.get("name") == "cpu":
            used: int | None = (resource.get("current") or {}).get("averageUtilization")
            return used
    return None


def _cpu_metric(used: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": used}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


# A kind that is shown -> how to make its form, and how the stored one.
_CONVERSIONS: Final[Mapping[tuple[str, str], tuple[Form, Form]]] = {
    ("events.k8s.io/v1", "Event"): (_new_event, _core_event),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): (_old_autoscaler, _new_autoscaler),
}
_AS_IT_IS: Final[tuple[Form, Form]] = (dict, dict)
