"""Converts HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 has one field for the target CPU utilization, and one field for the current CPU utilization. In
v1, four annotations contain the rest as JSON: the other metrics, the current values of all metrics,
the conditions, and the behavior. The current values include the CPU utilization. The annotation
with the behavior contains Go's field names, because upstream encodes an internal type without JSON
tags. In the conversion to v2, malformed content of the four annotations is lost. If a v2 object
already has any of these annotations, the conversion to v1 drops or replaces them. A CPU metric that
was converted to v1 and back becomes the last metric.

upstream: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/helpers.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json

_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_TARGET_USE: Final = "targetCPUUtilizationPercentage"
_CURRENT_USE: Final = "currentCPUUtilizationPercentage"

_RULES: Final[Mapping[str, type]] = {
    "stabilizationWindowSeconds": int,
    "selectPolicy": str,
    "policies": list,
    "tolerance": str,
}
_POLICY: Final[Mapping[str, type]] = {"type": str, "value": int, "periodSeconds": int}
_CONDITION: Final = (
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "observedGeneration",
)


def old_autoscaler(autoscaler: Json) -> Json:
    """Return `autoscaler`, an object of autoscaling/v2, in the form of autoscaling/v1.

    The result keeps the apiVersion of `autoscaler`.
    """
    spec = dict(autoscaler.get("spec") or {})
    status = {"currentReplicas": 0, "desiredReplicas": 0, **(autoscaler.get("status") or {})}
    metrics = spec.pop("metrics", None) or []
    current = status.pop("currentMetrics", None) or []
    others = [metric for metric in metrics if _target_use(metric) is None]
    notes: dict[str, Any] = {
        _METRICS: [old_target(metric) for metric in others],
        _CURRENT: [old_current(metric) for metric in current],
        _CONDITIONS: [_old_condition(each) for each in status.pop("conditions", None) or []],
        _BEHAVIOR: _old_behavior(spec.pop("behavior", None)),
    }
    _set(spec, _TARGET_USE, _target_use(next((one for one in metrics if _is_cpu(one)), {})))
    for metric in current:
        _set(status, _CURRENT_USE, _use(metric, "current"))
    return _annotated({**autoscaler, "spec": spec, "status": status}, notes)


def new_autoscaler(autoscaler: Json) -> Json:
    """Return `autoscaler`, an object of autoscaling/v1, in the form of autoscaling/v2.

    The result keeps the apiVersion of `autoscaler`.
    """
    spec, status = dict(autoscaler.get("spec") or {}), dict(autoscaler.get("status") or {})
    notes = (autoscaler.get("metadata") or {}).get("annotations") or {}
    metrics = [new_target(each) for each in _read(notes, _METRICS)]
    used = spec.pop(_TARGET_USE, None)
    if used is not None:
        target = {"type": "Utilization", "averageUtilization": used}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    current = [new_current(each) for each in _read(notes, _CURRENT)]
    in_use = status.pop(_CURRENT_USE, None)
    if in_use is not None and not current:
        resource = {"name": "cpu", "current": {"averageUtilization": in_use}}
        current.append({"type": "Resource", "resource": resource})
    _set(spec, "metrics", metrics or None)
    _set(spec, "behavior", _new_behavior(notes))
    _set(status, "currentMetrics", current or None)
    conditions = [_new_condition(each) for each in _read(notes, _CONDITIONS)]
    _set(status, "conditions", conditions or None)
    return _annotated({**autoscaler, "spec": spec, "status": status}, {})


def _set(obj: Json, name: str, value: Any) -> None:
    if value is not None:
        obj[name] = value


def _annotated(autoscaler: Json, notes: Mapping[str, Any]) -> Json:
    """Return `autoscaler` with `notes` (annotation name -> JSON value) as annotations.

    The notes replace all annotations that this conversion uses. Empty values are left out.
    """
    meta = dict(autoscaler.get("metadata") or {})
    given = meta.pop("annotations", None) or {}
    kept = {key: value for key, value in given.items() if key not in _NAMES}
    kept |= {key: _written(value) for key, value in notes.items() if value}
    if kept:
        meta["annotations"] = kept
    return {**autoscaler, "metadata": meta}


def _written(value: Any) -> str:
    """Return `value` as Go encodes it in JSON: with `<`, `>`, `&`, U+2028 and U+2029 escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPED)


def _read(notes: Mapping[str, str], name: str) -> list[Json]:
    found = _parsed(notes.get(name))
    return found if isinstance(found, list) and all(_has_type(each) for each in found) else []


def _has_type(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type", ""), str)


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _is_cpu(metric: Json) -> bool:
    return metric.get("type") == "Resource" and (metric.get("resource") or {}).get("name") == "cpu"


def _target_use(metric: Json) -> int | None:
    return _use(metric, "target")


def _use(metric: Json, part: str) -> int | None:
    if not _is_cpu(metric):
        return None
    used: int | None = (metric["resource"].get(part) or {}).get("averageUtilization")
    return used


def _old_condition(condition: Json) -> Json:
    always = {"type": "", "status": "", "lastTransitionTime": None}
    return always | {name: condition[name] for name in _CONDITION if name in condition}


def _new_condition(condition: Json) -> Json:
    known = ((name, condition[name]) for name in _CONDITION if name in condition)
    return {name: value for name, value in known if not isinstance(value, dict | list)}


def _old_behavior(behavior: Json | None) -> Json | None:
    if behavior is None:
        return None
    return {_go_name(name): _old_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _old_rules(rules: Json | None) -> Json | None:
    if rules is None:
        return None
    made = {_go_name(name): rules.get(name) for name in _RULES}
    if rules.get("policies") is not None:
        made["Policies"] = [_renamed(each, _POLICY, _go_name) for each in rules["policies"]]
    return made


def _new_behavior(notes: Mapping[str, str]) -> Json | None:
    found = _parsed(notes.get(_BEHAVIOR))
    given = _fitting(found, {"scaleUp": dict, "scaleDown": dict})
    return {name: _new_rules(rules) for name, rules in given.items()} or None


def _new_rules(rules: Json) -> Json:
    made = _fitting(rules, _RULES)
    if "policies" in made:
        made["policies"] = [_fitting(each, _POLICY) for each in made["policies"]]
    return made


def _fitting(found: Any, types: Mapping[str, type]) -> Json:
    """Return the fields of `found` whose names are in `types` and whose values have the right type.

    `types` maps field names to types. Field names match regardless of case. Returns {} if `found`
    is not an object.
    """
    if not isinstance(found, dict):
        return {}
    given = {name.lower(): value for name, value in found.items()}
    return {
        name: given[name.lower()]
        for name, type_ in types.items()
        if isinstance(given.get(name.lower()), type_)
    }


def _renamed(obj: Json, names: Iterable[str], rename: Callable[[str], str]) -> Json:
    return {rename(name): obj[name] for name in names if name in obj}


def _go_name(name: str) -> str:
    return name[0].upper() + name[1:]


_NAMES: Final = (_METRICS, _CURRENT, _BEHAVIOR, _CONDITIONS)
_ESCAPED: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


# --- metrics -------------------------------------------------------------------------------------

# autoscaling/v1 has a field only for the cpu utilization target; annotations contain all other
# metrics. A field that Go always encodes becomes zero if the metric lacks it. Values of the wrong
# type in an annotation are ignored.
#
# upstream: pkg/apis/autoscaling/v1/conversion.go, staging/src/k8s.io/api/autoscaling/v1/types.go

# Pairs: the name of a field in v1, and its path in v2.
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
# For each source of metrics, the quantity that v1 always encodes: it is zero if absent.
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
    """Return `metric`, an item of v2's `spec.metrics`, converted to v1."""
    return _old(metric, _TARGETS, _TARGET_ZEROS)


def old_current(metric: Json) -> Json:
    """Return `metric`, an item of v2's `status.currentMetrics`, converted to v1."""
    return _old(metric, _CURRENTS, _CURRENT_ZEROS)


def new_target(metric: Json) -> Json:
    """Return `metric`, a metric of v1, converted to an item of v2's `spec.metrics`."""
    made = _new(metric, _TARGETS, _TARGET_ZEROS)
    for source in _TARGETS:
        if source in made:
            made[source]["target"] = _typed(made[source])
    return made


def new_current(metric: Json) -> Json:
    """Return `metric`, a metric of v1, converted to an item of v2's `status.currentMetrics`."""
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
    """Return `value` in Go's order: fields in the order of declaration, labels sorted by name."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: (_RANK.get(name, len(_RANK)), name))
    return {name: _in_labels(name, value[name]) for name in names}


def _in_labels(name: str, value: Any) -> Any:
    return dict(sorted(value.items())) if name == "matchLabels" else _in_order(value)


def _typed(source: Json) -> Json:
    """Return the target of `source`, with the `type` that the target's value fields imply.

    `source` is the part of a metric that contains the target, such as the metric's field
    `resource`. The `value` of the target is left out if `source` is the field `object` and its
    target has an averageValue.
    """
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
