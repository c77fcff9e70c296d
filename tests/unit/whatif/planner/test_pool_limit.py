"""Limits of NodePools and node groups that the nodes of a plan violate."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.whatif.configuration.autoscaling.karpenter.config import node_pools
from fairlead.whatif.planner.pool_limit import limit_lines

STATUS = """
nodeGroups:
- name: eks-web-5ec4
  health: {minSize: 2, maxSize: 3}
"""


def node_pool(**spec):
    ref = {"group": "x", "kind": "X", "name": "x"}
    template = {"spec": {"nodeClassRef": ref, "requirements": []}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "web"},
        "spec": {"template": template, **spec},
    }


@pytest.fixture
def lines(make, found):
    """Returns the lines for `planned` nodes instead of `today` nodes, all with these labels."""

    def read(planned, today, *manifests, **labels):
        nodes = [decode_as(Node, make.node(f"n{i}", **labels)) for i in range(max(planned, today))]
        capacity = {"cpu": "4", "memory": "16Gi"}
        initial = found(*manifests)
        new = [(node, capacity) for node in nodes[:planned]]
        return limit_lines(new, nodes[:today], node_pools(initial), initial)

    return read


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cpu": "12", "memory": "48Gi", "nodes": "3"}, []),
        ({"cpu": "11500m"}, ["12 cpu in this answer, but its limit is 11500m"]),
        ({"memory": "32Gi"}, ["48Gi memory in this answer, but its limit is 32Gi"]),
        ({"nodes": "2"}, ["3 nodes in this answer, but its limit is 2"]),
        ({"nvidia.com/gpu": "0"}, []),
    ],
)
def test_the_total_capacity_of_a_node_pool_is_limited(lines, limits, expected):
    pool = node_pool(limits=limits)
    named = [f"NodePool web has {one}: raise the limit first." for one in expected]
    assert list(lines(3, 1, pool, **{"karpenter.sh/nodepool": "web"})) == named
    assert not lines(3, 1, pool, **{"karpenter.sh/nodepool": "other"})


@pytest.mark.parametrize(
    ("planned", "today", "expected"),
    [
        (4, 3, ["4 nodes in this answer, but its maximum is 3: raise the maximum"]),
        (3, 4, []),
        (1, 2, ["1 node in this answer, but its minimum is 2: lower the minimum"]),
        pytest.param(1, 1, [], id="the plan does not change the group"),
    ],
)
def test_a_node_group_has_a_minimum_and_a_maximum(lines, make, planned, today, expected):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "registry/cluster-autoscaler:v1.36.0"
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": STATUS},
    }
    label = "eks.amazonaws.com/nodegroup"
    named = tuple(f"Node group web has {one} first." for one in expected)
    assert lines(planned, today, deployment, status, **{label: "web"}) == named
    assert not lines(planned, today, deployment, status, **{label: "other"})
    # With a NodePool and without the Deployment, the status may be left over.
    assert not lines(planned, today, status, node_pool(), **{label: "web"})
