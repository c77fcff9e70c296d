"""The strategy of HorizontalPodAutoscalers.

upstream: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go,
pkg/apis/autoscaling/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.facts import facts_of, values_of
from fairlead.api.json import Json
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation.core.resource import check_container_resource
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_field, check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    dns_subdomain_problems,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.scaling_policy import check_scale_to_zero, check_scaling_policies
from fairlead.apiserver.validation.status import check_autoscaler_status

# --- validation ----------------------------------------------------------------------------------

METRICS: Final = values_of("autoscaling.v2.MetricSpec", "type")
_SPEC: Final = "autoscaling.v2.HorizontalPodAutoscalerSpec"
_TARGET: Final = facts_of("autoscaling.v2.MetricTarget").fields
WINDOW_MAX_S: Final = 3600
# In the order in which upstream checks them.
_SOURCES: Final = ("object", "external", "pods", "resource", "containerResource")
_NO_TARGET: Final = "must set either a target raw value or a target utilization"
_TWO_TARGETS: Final = "may not set both a target raw value and a target utilization"


def check_autoscaler(obj: Json) -> Causes:
    """Yield the errors of a HorizontalPodAutoscaler in version v1 or v2."""
    spec = obj["spec"]
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    yield from check_fields("spec", _SPEC, spec, "minReplicas")
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if most < least:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid("spec.maxReplicas", most, why)
    yield from _check_reference("spec.scaleTargetRef", spec.get("scaleTargetRef") or {})
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        yield from _check_metric(f"spec.metrics[{index}]", metric)
    share = spec.get("targetCPUUtilizationPercentage")  # v1; upstream converts it to a metric
    if share is not None and share < 1:
        where = "spec.metrics[0].resource.target.averageUtilization"
        yield invalid(where, share, "must be greater than 0")
    yield from check_scale_to_zero(least, (one.get("type", "") for one in metrics))
    for key in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(key)
        if rules is not None:
            yield from _check_rules(f"spec.behavior.{key}", rules)


def _check_reference(field: str, reference: Json) -> Causes:
    kind = "autoscaling.v2.CrossVersionObjectReference"
    yield from check_fields(field, kind, reference, "kind", "name")


def _check_rules(field: str, rules: Json) -> Causes:
    window_s = rules.get("stabilizationWindowSeconds")
    where = f"{field}.stabilizationWindowSeconds"
    if window_s is not None and window_s < 0:
        yield invalid(where, window_s, "must be greater than or equal to zero")
    if window_s is not None and window_s > WINDOW_MAX_S:
        yield invalid(where, window_s, f"must be less than or equal to {WINDOW_MAX_S}")
    yield from check_fields(field, "autoscaling.v2.HPAScalingRules", rules)
    yield from check_scaling_policies(field, rules)
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse_quantity(tolerance).nano < 0:
        shown = canonical(parse_quantity(tolerance))
        yield invalid(f"{field}.tolerance", shown, "must be greater than or equal to 0")


def _check_metric(field: str, metric: Json) -> Causes:
    type_ = metric.get("type", "")
    if not type_:
        yield required(f"{field}.type", "must specify a metric source type")
    if type_ not in METRICS:
        yield not_supported(f"{field}.type", type_, METRICS)
    stated = [key for key in _SOURCES if metric.get(key) is not None]
    for key in stated[:1]:
        yield from _CHECKS[key](f"{field}.{key}", metric[key])
    expected = type_[:1].lower() + type_[1:]
    if type_ not in METRICS:  # upstream checks this twice
        yield not_supported(f"{field}.type", type_, METRICS)
    elif expected not in stated:
        why = "must populate information for the given metric source"
        yield required(f"{field}.{expected}", why)
    for key in stated if len(stated) != 1 else ():
        if key != expected:
            yield forbidden(f"{field}.{key}", "must populate the given metric source only")


def _check_name(field: str, metric: Json) -> Causes:
    yield from check_fields(field, "autoscaling.v2.MetricIdentifier", metric, "name")


def _check_target(field: str, target: Json) -> Causes:
    type_ = target.get("type", "")
    if not type_:
        yield required(f"{field}.type", "must specify a metric target type")
    yield from check_field(f"{field}.type", _TARGET["type"], type_)
    for key in ("value", "averageValue"):
        if target.get(key) is not None and parse_quantity(target[key]).nano <= 0:
            shown = canonical(parse_quantity(target[key]))
            yield invalid(f"{field}.{key}", shown, "must be positive")
    yield from check_fields(field, "autoscaling.v2.MetricTarget", target, "averageUtilization")


def _check_object(field: str, source: Json) -> Causes:
    target = source.get("target") or {}
    yield from _check_reference(f"{field}.describedObject", source.get("describedObject") or {})
    yield from _check_name(f"{field}.metric", source.get("metric") or {})
    yield from _check_target(f"{field}.target", target)
    if target.get("value") is None and target.get("averageValue") is None:
        why = "must set either a target value or averageValue"
        yield required(f"{field}.target.averageValue", why)


def _check_external(field: str, source: Json) -> Causes:
    target = source.get("target") or {}
    yield from _check_name(f"{field}.metric", source.get("metric") or {})
    yield from _check_target(f"{field}.target", target)
    stated = [key for key in ("value", "averageValue") if target.get(key) is not None]
    if not stated:
        why = "must set either a target value for metric or a per-pod target"
        yield required(f"{field}.target.averageValue", why)
    if len(stated) > 1:
        why = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{field}.target.value", why)


def _check_pods(field: str, source: Json) -> Causes:
    target = source.get("target") or {}
    yield from _check_name(f"{field}.metric", source.get("metric") or {})
    yield from _check_target(f"{field}.target", target)
    if target.get("averageValue") is None:
        why = "must specify a positive target averageValue"
        yield required(f"{field}.target.averageValue", why)


def _check_resource(field: str, source: Json) -> Causes:
    yield from check_fields(field, "autoscaling.v2.ResourceMetricSource", source, "name")
    yield from _check_use(f"{field}.target", source.get("target") or {})


def _check_container_resource(field: str, source: Json) -> Causes:
    name, container = source.get("name", ""), source.get("container", "")
    if not name:
        yield required(f"{field}.name", "must specify a resource name")
    else:
        yield from check_container_resource(f"{field}.name", name)
    if not container:
        yield required(f"{field}.container", "must specify a container")
    else:
        yield from check_dns_label(f"{field}.container", container)
    yield from _check_use(f"{field}.target", source.get("target") or {})


def _check_use(field: str, target: Json) -> Causes:
    yield from _check_target(field, target)
    stated = [key for key in ("averageUtilization", "averageValue") if target.get(key) is not None]
    if not stated:
        yield required(f"{field}.averageUtilization", _NO_TARGET)
    if len(stated) > 1:
        yield forbidden(f"{field}.averageValue", _TWO_TARGETS)


_CHECKS: Final[Mapping[str, Callable[[str, Json], Causes]]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "horizontalpodautoscalers.autoscaling": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(check_autoscaler),
            subresources={"status": check_autoscaler_status},
        )
    )
}
