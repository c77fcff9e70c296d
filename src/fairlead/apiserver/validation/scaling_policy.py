"""The scaling policies of a HorizontalPodAutoscaler.

upstream: pkg/apis/autoscaling/validation/validation.go:validateScalingPolicy
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, invalid
from fairlead.apiserver.validation.meta.field_facts import check_fields

PERIOD_MAX_S: Final = 1800


def check_scaling_policies(field: str, rules: Json) -> Causes:
    """Yield the errors of the policies in `rules`, a scaleUp or scaleDown at the path `field`."""
    for index, policy in enumerate(rules.get("policies") or []):
        at = f"{field}.policies[{index}]"
        period_s = policy.get("periodSeconds", 0)
        yield from check_fields(at, "autoscaling.v2.HPAScalingPolicy", policy)
        if period_s > PERIOD_MAX_S:
            why = f"must be less than or equal to {PERIOD_MAX_S}"
            yield invalid(f"{at}.periodSeconds", period_s, why)
