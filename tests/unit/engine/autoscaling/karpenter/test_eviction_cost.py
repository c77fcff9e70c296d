"""The cost of disrupting a node."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.eviction_cost import lifetime_remaining

NOW = parse_timestamp("2026-01-01T12:00:00Z")


@pytest.mark.parametrize(
    ("expire_after", "share"), [("Never", 1.0), ("48h", 0.75), ("6h", 0.0), ("0s", 0.0)]
)
def test_the_cost_is_scaled_by_the_remaining_share_of_the_lifetime(expire_after, share):
    # upstream: pkg/utils/disruption/disruption.go:LifetimeRemaining
    claim = decode_as(
        NodeClaim,
        {
            "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"expireAfter": expire_after},
        },
    )
    assert lifetime_remaining(claim, NOW) == share
