"""NodePools as custom resources."""

from __future__ import annotations

import json

from fairlead.api.codec import decode
from fairlead.engine.autoscaling.karpenter.served_resources import karpenter_view
from fairlead.testing.torture.karpenter_scenario import node_pools


def test_equal_templates_have_equal_hashes():
    """A NodePool that was stored and loaded again must not make its nodes drift."""
    (pool, _) = node_pools(1)
    pool["spec"]["template"]["spec"]["expireAfter"] = "Never"
    loaded = json.loads(json.dumps(pool))
    first, second = (karpenter_view(decode(one)).metadata for one in (pool, loaded))
    assert first.annotations == second.annotations
