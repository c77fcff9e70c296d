"""The configuration of Karpenter: notes about spot, and defaults of the API server."""

from __future__ import annotations

import pytest

from fairlead.whatif.configuration.autoscaling.karpenter_config import karpenter_config

SPOT_AND_ON_DEMAND = {"operator": "In", "values": ["spot", "on-demand"]}
ON_DEMAND = {"operator": "In", "values": ["on-demand"]}
WITHOUT_SPOT = "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"
WITH_SPOT = "name,cpu,memory,price,spotPrice\nsmall,4,16Gi,0.2,0.1\n"


@pytest.fixture
def spot_notes(found, make, write):
    """Return the notes about spot for one NodePool and the instance types of a CSV file."""

    def read(capacity_type=None, types=WITHOUT_SPOT, policy="WhenEmptyOrUnderutilized"):
        key = "karpenter.sh/capacity-type"
        requirements = [] if capacity_type is None else [{"key": key, **capacity_type}]
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": {"requirements": requirements}},
                "disruption": {"consolidationPolicy": policy},
            },
        }
        cluster = found(make.node("n"), pool)
        _, notes = karpenter_config("dump", cluster, str(write("types.csv", types)))
        return [one for one in notes if "spot offering" in one]

    return read


@pytest.mark.parametrize("capacity_type", [None, SPOT_AND_ON_DEMAND])
def test_a_pool_that_allows_both_needs_a_type_with_spot(spot_notes, capacity_type):
    [note] = spot_notes(capacity_type)
    assert note.startswith("NodePool default allows spot and on-demand, but no instance type")
    assert "Require karpenter.sh/capacity-type on-demand in the NodePool" in note


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"capacity_type": ON_DEMAND}, id="the pool allows on-demand only"),
        pytest.param({"types": WITH_SPOT}, id="a type has a spot price"),
        pytest.param({"policy": "WhenEmpty"}, id="no node is replaced"),
    ],
)
def test_replacements_that_can_be_launched_need_no_note(spot_notes, given):
    assert spot_notes(**given) == []


@pytest.mark.parametrize(("given", "expected"), [({}, "720h"), ({"expireAfter": "Never"}, "Never")])
def test_nodes_expire_after_the_servers_default(found, make, write, given, expected):
    """A NodePool from a file has not been through an API server."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": [], **given}}},
    }
    types = str(write("types.csv", WITH_SPOT))
    config, _ = karpenter_config("dump", found(make.node("n"), pool), types)
    [read] = config.pools
    assert read.spec.template.spec.expire_after == expected
