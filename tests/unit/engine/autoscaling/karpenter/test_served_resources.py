"""NodePools as custom resources."""

from __future__ import annotations

import json

import pytest

from fairlead.api.codec import decode
from fairlead.engine.autoscaling.karpenter.served_resources import karpenter_view
from fairlead.testing.torture.karpenter_scenario import node_pools

TOO_LONG = f"{10**30}h"


def test_equal_templates_have_equal_hashes():
    """A NodePool that was stored and loaded again must not make its nodes drift."""
    (pool, _) = node_pools(1)
    pool["spec"]["template"]["spec"]["expireAfter"] = "Never"
    loaded = json.loads(json.dumps(pool))
    first, second = (karpenter_view(decode(one)).metadata for one in (pool, loaded))
    assert first.annotations == second.annotations


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("NodePool", {"disruption": {"consolidateAfter": TOO_LONG}}),
        ("NodePool", {"disruption": {"budgets": [{"duration": TOO_LONG}]}}),
        ("NodePool", {"template": {"spec": {"expireAfter": TOO_LONG}}}),
        ("NodeClaim", {"expireAfter": TOO_LONG}),
        ("NodeClaim", {"terminationGracePeriod": TOO_LONG}),
    ],
)
def test_an_object_with_a_duration_that_cannot_be_read_is_ignored(kind, spec):
    """The pattern in Karpenter's CustomResourceDefinitions does not limit the digits."""
    obj = {"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    assert karpenter_view(decode(obj)) is None


def test_an_object_that_never_expires_is_not_ignored():
    spec = {"expireAfter": "Never", "terminationGracePeriod": "1h"}
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "x"}}
    assert karpenter_view(decode({**claim, "spec": spec})) is not None
