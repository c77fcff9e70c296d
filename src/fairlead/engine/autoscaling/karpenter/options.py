"""Karpenter's settings: policies and feature gates, with upstream's defaults.

upstream: pkg/operator/options/options.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.labels import CORE_WELL_KNOWN_LABELS
from fairlead.engine.core.instant import DurationNs, seconds

RESPECT: Final = "Respect"
IGNORE: Final = "Ignore"
STRICT: Final = "Strict"
BEST_EFFORT: Final = "BestEffort"

MAX_INSTANCE_TYPES: Final = 600
_NOMINATION_MIN: Final[DurationNs] = seconds(10)


class KarpenterOptions(Struct, frozen=True, kw_only=True):
    """Settings of Karpenter. Times are in seconds.

    If `preference_policy` is `Ignore`, preferences of pods are ignored. If `min_values_policy` is
    `BestEffort`, a launch may offer fewer values than `minValues`. `well_known_labels` are the
    well-known labels of Karpenter and of the provider.
    """

    preference_policy: str = RESPECT
    min_values_policy: str = STRICT
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    ignore_dra_requests: bool = True
    max_instance_types: int = MAX_INSTANCE_TYPES
    unsupported_provisioners: frozenset[str] = frozenset()
    unsupported_topology_keys: frozenset[str] = frozenset()
    well_known_labels: frozenset[str] = CORE_WELL_KNOWN_LABELS
    batch_idle_s: float = 1.0
    batch_max_s: float = 10.0

    @property
    def respects_preferences(self) -> bool:
        """Whether a provisioning pass treats preferences as requirements until it relaxes them."""
        return self.preference_policy == RESPECT

    @property
    def nomination(self) -> DurationNs:
        """How long a nominated node is protected from disruption, in nanoseconds."""
        # upstream: pkg/controllers/state/statenode.go:nominationWindow
        return max(seconds(2 * self.batch_max_s), _NOMINATION_MIN)

    @property
    def relaxes_min_values(self) -> bool:
        """Whether a new NodeClaim may allow fewer values of a label than minValues requires."""
        return self.min_values_policy == BEST_EFFORT
