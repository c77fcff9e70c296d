"""The strategy of PodDisruptionBudgets.

upstream: pkg/registry/policy/poddisruptionbudget/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.kind import POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.strategy import ResourceStrategy

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    POD_DISRUPTION_BUDGET.resource: ResourceStrategy(allow_unconditional_update=False)
}
