"""The factors of a node's disruption cost: its pods' eviction cost, and its remaining lifetime.

upstream: pkg/utils/disruption/disruption.go
"""

from __future__ import annotations

import contextlib
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, duration_or_never
from fairlead.engine.autoscaling.karpenter.labels import POD_DELETION_COST
from fairlead.engine.core.instant import Instant

_COST_LIMIT: Final = 10.0


def eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod: 1, plus terms for its deletion cost and priority.

    The cost is limited to the range -10 to 10.
    """
    # upstream: pkg/utils/disruption/disruption.go:EvictionCost
    cost = 1.0
    text = pod.metadata.annotations.get(POD_DELETION_COST)
    if text is not None:
        with contextlib.suppress(ValueError):
            cost += float(text) / 2**27
    cost += (pod.spec.priority or 0) / 2**25
    return min(max(cost, -_COST_LIMIT), _COST_LIMIT)


def lifetime_remaining(claim: NodeClaim, now: Instant) -> float:
    """Return the share of the NodeClaim's lifetime that is left, from 0 to 1.

    Returns 1 if the NodeClaim never expires.
    """
    # upstream: pkg/utils/disruption/disruption.go:LifetimeRemaining
    expire_after = duration_or_never(claim.spec.expire_after)
    if expire_after is None:
        return 1.0
    if not expire_after:
        return 0.0
    age = now - parse_timestamp(claim.metadata.creation_timestamp)
    return min(max((expire_after - age) / expire_after, 0.0), 1.0)
