"""New nodes of a pool have the lasting taints of the pool, and the zones of its nodes."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.whatif.snapshot.node_pool import is_lasting_taint, node_traits, other_zones


@pytest.mark.parametrize(
    ("key", "is_lasting"),
    [
        ("dedicated", True),
        ("node-role.kubernetes.io/control-plane", True),
        pytest.param("node.kubernetes.io/os", True, id="GKE's taint of Windows nodes"),
        ("node.kubernetes.io/unschedulable", False),
        ("node.kubernetes.io/unreachable", False),
        ("node.kubernetes.io/out-of-service", False),
        ("node.cloudprovider.kubernetes.io/uninitialized", False),
        ("ToBeDeletedByClusterAutoscaler", False),
        ("karpenter.sh/disrupted", False),
        ("aws-node-termination-handler/spot-itn", False),
    ],
)
def test_new_nodes_do_not_have_the_condition_taints_of_the_original_node(key, is_lasting):
    assert is_lasting_taint(key) is is_lasting


def test_an_interrupted_machine_stays_in_its_pool(make):
    event = {"aws-node-termination-handler/event-id": "spot-itn-5ec4"}
    made = (make.node("n", pool="x", **labels) for labels in ({}, event))
    usual, interrupted = (node_traits(decode_as(Node, one)) for one in made)
    assert interrupted == usual


def test_the_deprecated_zone_label_takes_precedence():
    """Otherwise the group has one zone here, and two zones in its simulated provider."""
    current, deprecated = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
    zones = ({current: "a", deprecated: zone} for zone in "xy")
    [other] = other_zones([{"metadata": {"name": "n", "labels": labels}} for labels in zones])
    assert other["metadata"]["labels"] == {current: "a", deprecated: "y"}
