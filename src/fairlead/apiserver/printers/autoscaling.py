"""The table row of a HorizontalPodAutoscaler, in its v2 form.

upstream: pkg/printers/internalversion/printers.go:printHorizontalPodAutoscaler, formatHPAMetrics
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, number, text
from fairlead.apiserver.printers.age import UNKNOWN, age_of
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import NONE, UNSET

_SHOWN_MAX: Final = 2
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _cells(obj: Json, now: int) -> list[Cell]:
    target, minimum = mapping(obj, "spec", "scaleTargetRef"), at(obj, "spec", "minReplicas")
    return [
        name_of(obj),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _metrics(items(obj, "spec", "metrics"), items(obj, "status", "currentMetrics")),
        UNSET if minimum is None else str(minimum),
        number(obj, "spec", "maxReplicas"),
        number(obj, "status", "currentReplicas"),
        age_of(obj, now),
    ]


HORIZONTAL_POD_AUTOSCALER: Final = printer(
    "Name/name, Reference, Targets, MinPods, MaxPods, Replicas, Age", _cells
)


def _metrics(specs: list[Json], statuses: list[Json]) -> str:
    if not specs:
        return NONE
    padded = [*statuses, *({} for _ in specs)]
    shown = [_metric(spec, status) for spec, status in zip(specs, padded, strict=False)]
    listed = ", ".join(shown[:_SHOWN_MAX])
    rest = len(shown) - _SHOWN_MAX
    return f"{listed} + {rest} more..." if rest > 0 else listed


def _metric(spec: Json, status: Json) -> str:
    """Return a metric as `<current>/<target>`; a resource metric has its name in front."""
    kind = text(spec, "type")
    source = _SOURCES.get(kind)
    if source is None:
        return "<unknown type>"
    target = mapping(spec, source, "target")
    current = mapping(status, source, "current")
    if kind.endswith("Resource"):
        return f"{text(spec, source, 'name')}: {_of_resource(target, current)}"
    if kind == "Pods":
        return f"{text(current, 'averageValue') or UNKNOWN}/{text(target, 'averageValue')}"
    if "averageValue" in target:
        return f"{text(current, 'averageValue') or UNKNOWN}/{target['averageValue']} (avg)"
    return f"{text(current, 'value') or UNKNOWN}/{text(target, 'value')}"


def _of_resource(target: Json, current: Json) -> str:
    if "averageValue" in target:
        return f"{text(current, 'averageValue') or UNKNOWN}/{target['averageValue']}"
    utilization, target_utilization = (
        current.get("averageUtilization"),
        target.get("averageUtilization"),
    )
    return f"{_percent(utilization, UNKNOWN)}/{_percent(target_utilization, '<auto>')}"


def _percent(value: object, otherwise: str) -> str:
    return otherwise if value is None else f"{value}%"
