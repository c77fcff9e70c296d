"""The strategy of HorizontalPodAutoscalers.

upstream: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation.autoscaling import check_autoscaler
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.status import check_autoscaler_status

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
