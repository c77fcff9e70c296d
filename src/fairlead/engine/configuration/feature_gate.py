"""Feature gates: which values a configuration may set.

upstream: pkg/features/kube_features.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.text.field_problem import forbidden
from fairlead.engine.configuration.error import ConfigurationError

POP_FROM_BACKOFF: Final = "SchedulerPopFromBackoffQ"
_FREE: Final = (POP_FROM_BACKOFF,)
# The behaviour of the engine, which is upstream's default.
_FIXED: Final[Mapping[str, bool]] = {
    "DynamicResourceAllocation": True,
    "GangScheduling": False,
    "GenericWorkload": False,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "NominatedNodeNameForExpectation": True,
    "OpportunisticBatching": True,
    "PodLevelResources": True,
    "SchedulerAsyncPreemption": True,
    "SchedulerQueueingHints": True,
    "StorageCapacityScoring": False,
    "TaintTolerationComparisonOperators": False,
}


def is_on(gates: Mapping[str, bool], gate: str) -> bool:
    """Return True if `gate`, one of those on by default, is on."""
    return gates.get(gate, True)


def refuse_others(gates: Mapping[str, bool]) -> None:
    """Raise ConfigurationError for a gate that is unknown, or that cannot have the given value."""
    for name, value in gates.items():
        fixed = _FIXED.get(name)
        if name in _FREE or value is fixed:
            continue
        field = f"featureGates.{name}"
        if fixed is None:
            known = ", ".join(sorted((*_FREE, *_FIXED)))
            raise ConfigurationError(field, f"no such gate here; known: {known}")
        raise ConfigurationError(field, forbidden(f"it is always {str(fixed).lower()} here"))
