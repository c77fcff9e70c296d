"""The reasons of evictions that empty a node, and the reasons whose evictions respect budgets."""

from __future__ import annotations

from typing import Final

from fairlead.engine.core.reporter import (
    KARPENTER_DEADLINE,
    KARPENTER_DRAIN,
    SCALE_DOWN,
)
from fairlead.engine.workloads.drain.controller import WHY as DRAINED

# Evictions with these reasons use the eviction API, which asks the disruption budgets.
EVICTION_API_REASONS: Final = (DRAINED, SCALE_DOWN, KARPENTER_DRAIN)
# With these reasons, the node is healthy or leaves the cluster, so the replacements of its pods
# run elsewhere.
NODE_REMOVAL_REASONS: Final = (*EVICTION_API_REASONS, KARPENTER_DEADLINE)
