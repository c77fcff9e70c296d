"""The number of nodes that the budgets of a NodePool allow to disrupt."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.disruption.budget import UNLIMITED, allowed

NOW = 10**18


def pool(*budgets):
    spec = {
        "disruption": {"budgets": list(budgets)},
        "template": {"spec": {"nodeClassRef": {"group": "x", "kind": "y", "name": "z"}}},
    }
    return decode_as(NodePool, {"metadata": {"name": "p"}, "spec": spec})


@pytest.mark.parametrize(
    ("budgets", "number"),
    [
        ([{"nodes": "2", "reasons": ["Empty"]}], UNLIMITED),
        ([{"nodes": "2"}, {"nodes": "30%"}], 2),
        ([{"nodes": "1%"}], 1),
        # upstream: nodepool.go:GetAllowedDisruptionsByReason parses every budget
        ([{"nodes": "2", "reasons": ["Empty"], "schedule": "0 99 * * *", "duration": "1h"}], 0),
        # upstream: nodepool.go:IsActive parses a schedule that is missing
        ([{"nodes": "2", "duration": "1h"}], 0),
        # upstream: robfig/cron returns the zero time, which is not after now
        ([{"nodes": "2", "schedule": "0 0 30 2 *", "duration": "1h"}], 2),
        # upstream: only a list that is nil applies to all reasons
        ([{"nodes": "2", "reasons": []}], UNLIMITED),
    ],
)
def test_the_number_of_nodes_that_a_budget_allows(budgets, number):
    assert allowed(pool(*budgets), 10, "Drifted", NOW) == number
