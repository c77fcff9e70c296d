"""The strategy of PodDisruptionBudgets.

upstream: pkg/registry/policy/poddisruptionbudget/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.kind import POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation.meta.kind_rules import KindRules
from fairlead.apiserver.validation.policy import check_disruption_budget
from fairlead.apiserver.validation.status import check_disruption_budget_status

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    POD_DISRUPTION_BUDGET.resource: ResourceStrategy(
        allow_unconditional_update=False,
        rules=KindRules(
            accepts_any_finalizer=True,
            metadata_validations=0,
            metadata_comparisons=1,
            new=check_disruption_budget,
            subresources={"status": check_disruption_budget_status},
        ),
    )
}
