"""HorizontalPodAutoscalers, which are kept but not acted on.

upstream: pkg/apis/autoscaling/validation/validation.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.served.form import check_at_least

Json = dict[str, Any]

METRICS: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
TO_ZERO: Final = (
    "must specify at least one Object or External metric to support scaling to zero replicas"
)


def check_autoscaler(obj: Json) -> Causes:
    """A HorizontalPodAutoscaler of either version."""
    spec = obj["spec"]
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    yield from check_at_least("spec.minReplicas", least, 1)
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if most < least:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid("spec.maxReplicas", most, why)
    for key in ("kind", "name"):
        if not (spec.get("scaleTargetRef") or {}).get(key):
            yield required(f"spec.scaleTargetRef.{key}")
    metrics = spec.get("metrics") or []
    for place, metric in enumerate(metrics):
        yield from _check_metric(f"spec.metrics[{place}]", metric)
    if least == 0 and not any(one.get("type") in ("Object", "External") for one in metrics):
        yield forbidden("spec.metrics", TO_ZERO)


def _check_metric(field: str, metric: Json) -> Causes:
    sort = metric.get("type", "")
    if not sort:
        yield required(f"{field}.type", "must specify a metric source type")
    elif sort not in METRICS:
        # upstream comes by here twice
        yield not_supported(f"{field}.type", sort, METRICS)
        yield not_supported(f"{field}.type", sort, METRICS)
    elif metric.get(sort[0].lower() + sort[1:]) is None:
        key = sort[0].lower() + sort[1:]
        yield required(f"{field}.{key}", "must populate information for the given metric source")
