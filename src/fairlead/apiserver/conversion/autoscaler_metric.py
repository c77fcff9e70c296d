"""Converts metrics of a HorizontalPodAutoscaler between their v1 and v2 fields.

In v1 they exist only in annotations. Fields that Go always encodes are zero if absent. Values of
the wrong type in an annotation are ignored.

upstream: pkg/apis/autoscaling/v1/conversion.go, staging/src/k8s.io/api/autoscaling/v1/types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json

# The name of a field in v1, and its path in v2.
Fields = tuple[tuple[str, str], ...]

_RESOURCE: Final[Fields] = (
    ("name", "name"),
    ("targetAverageUtilization", "target.averageUtilization"),
    ("targetAverageValue", "target.averageValue"),
)
_TARGETS: Final[Mapping[str, Fields]] = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("targetValue", "target.value"),
        ("selector", "metric.selector"),
        ("averageValue", "target.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("targetAverageValue", "target.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": _RESOURCE,
    "containerResource": (*_RESOURCE, ("container", "container")),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("targetValue", "target.value"),
        ("targetAverageValue", "target.averageValue"),
    ),
}
# Quantities that v1 always encodes: they are zero if absent.
_TARGET_ZEROS: Final = {"object": "targetValue", "pods": "targetAverageValue"}
_CURRENT_ZEROS: Final = {
    "object": "currentValue",
    "pods": "currentAverageValue",
    "resource": "currentAverageValue",
    "containerResource": "currentAverageValue",
    "external": "currentValue",
}


def _now(fields: Fields) -> Fields:
    return tuple(
        (
            old.replace("target", "current", 1) if new.startswith("target.") else old,
            new.replace("target.", "current.", 1),
        )
        for old, new in fields
    )


_CURRENTS: Final[Mapping[str, Fields]] = {kind: _now(fields) for kind, fields in _TARGETS.items()}


def old_target(metric: Json) -> Json:
    """An entry of `spec.metrics` in v1."""
    return _old(metric, _TARGETS, _TARGET_ZEROS)


def old_current(metric: Json) -> Json:
    """An entry of `status.currentMetrics` in v1."""
    return _old(metric, _CURRENTS, _CURRENT_ZEROS)


def new_target(metric: Json) -> Json:
    """An entry of `spec.metrics` in v2."""
    made = _new(metric, _TARGETS, _TARGET_ZEROS)
    for source in _TARGETS:
        if source in made:
            made[source]["target"] = _typed(made[source])
    return made


def new_current(metric: Json) -> Json:
    """An entry of `status.currentMetrics` in v2."""
    return _new(metric, _CURRENTS, _CURRENT_ZEROS)


def _old(metric: Json, fields: Mapping[str, Fields], zeros: Mapping[str, str]) -> Json:
    made = {"type": metric.get("type", "")}
    for source in fields:
        if metric.get(source) is not None:
            always = zeros.get(source)
            found = {always: "0"} if always else {}
            found |= _found(metric[source], fields[source])
            made[source] = {old: found[old] for old, _ in fields[source] if old in found}
    return made


def _found(source: Json, fields: Fields) -> Json:
    found = {old: _at(source, new.split(".")) for old, new in fields}
    return {old: _in_order(value) for old, value in found.items() if value is not None}


def _new(metric: Json, fields: Mapping[str, Fields], zeros: Mapping[str, str]) -> Json:
    made: Json = {"type": metric.get("type", "")}
    for source in fields:
        given = metric.get(source)
        if not isinstance(given, dict):
            continue
        made[source] = {}
        for old, new in fields[source]:
            value = given.get(old, "0" if old == zeros.get(source) else None)
            if isinstance(value, _type_of(old)):
                _put(made[source], new.split("."), value)
    return made


def _type_of(name: str) -> type:
    if name.endswith("Utilization"):
        return int
    return dict if name == "target" or name.lower().endswith("selector") else str


def _at(obj: Json, path: Iterable[str]) -> Any:
    found: Any = obj
    for step in path:
        found = None if found is None else found.get(step)
    return found


def _put(obj: Json, path: list[str], value: Any) -> None:
    for step in path[:-1]:
        obj = obj.setdefault(step, {})
    obj[path[-1]] = value


def _in_order(value: Any) -> Any:
    """References and selectors as Go encodes them: fields in order, labels sorted."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: (_RANK.get(name, len(_RANK)), name))
    return {name: _in_labels(name, value[name]) for name in names}


def _in_labels(name: str, value: Any) -> Any:
    return dict(sorted(value.items())) if name == "matchLabels" else _in_order(value)


def _typed(source: Json) -> Json:
    """Set the type of each target, which follows from its values."""
    target = dict(source.get("target") or {})
    if "averageValue" in target and "describedObject" in source:
        target.pop("value", None)
    for name, type_ in (("averageUtilization", "Utilization"), ("value", "Value")):
        if name in target:
            return {"type": type_, **target}
    return {"type": "AverageValue", **target}


_ORDER: Final = (
    *("kind", "name", "apiVersion"),
    *("matchLabels", "matchExpressions"),
    *("key", "operator", "values"),
)
_RANK: Final = {name: place for place, name in enumerate(_ORDER)}
