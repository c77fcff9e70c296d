"""Validates a HorizontalPodAutoscaler's scaling policies, and its metrics if minReplicas is 0.

upstream: pkg/apis/autoscaling/validation/validation.go: validateScalingPolicy, validateMetrics
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid
from fairlead.apiserver.validation.meta.field_facts import check_fields

PERIOD_MAX_S: Final = 1800
TO_ZERO: Final = (
    "must specify at least one Object or External metric to support scaling to zero replicas"
)
_TO_ZERO_TYPES: Final = frozenset(("Object", "External"))


def check_scale_to_zero(least: int, types: Iterable[str]) -> Causes:
    """Yield an error if minReplicas (`least`) is 0 and no metric has the type Object or External.

    `types` are the types of the metrics.
    """
    if least == 0 and _TO_ZERO_TYPES.isdisjoint(types):
        yield forbidden("spec.metrics", TO_ZERO)


def check_scaling_policies(field: str, rules: Json) -> Causes:
    """Yield the errors of the policies in `rules`, a scaleUp or scaleDown at the path `field`."""
    for index, policy in enumerate(rules.get("policies") or []):
        at = f"{field}.policies[{index}]"
        period_s = policy.get("periodSeconds", 0)
        yield from check_fields(at, "autoscaling.v2.HPAScalingPolicy", policy)
        if period_s > PERIOD_MAX_S:
            why = f"must be less than or equal to {PERIOD_MAX_S}"
            yield invalid(f"{at}.periodSeconds", period_s, why)
