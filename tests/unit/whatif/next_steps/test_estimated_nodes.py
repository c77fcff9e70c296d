"""The number of new nodes that the dashboard of a running cluster suggests."""

from __future__ import annotations

import pytest

from fairlead.whatif.next_steps.estimated_nodes import estimated_nodes
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

WEB = WorkloadRef("Deployment", "ns", "web")


def pod(cpu, reason="0/1 nodes are available: 1 Insufficient cpu."):
    return PodEnd(namespace="ns", name="p", requests={"cpu": cpu}, owner=WEB, reason=reason)


def node(requested):
    return NodeEnd(
        name="n",
        zone="",
        unschedulable=False,
        allocatable={"cpu": 4000, "pods": 110},
        requested={"cpu": requested},
        pods=(),
    )


@pytest.mark.parametrize(
    ("pending", "requested", "expected"),
    [
        pytest.param(
            [pod(3000)] * 2, 4000,
            [("ask with at least 2 more nodes like n", "--add-nodes 2 --like n")],
            id="the estimate equals the lower bound",
        ),
        pytest.param(
            [pod(2000)] * 5, 2000,
            [("ask with about 3 more nodes like n (at least 2)", "--add-nodes 3 --like n")],
            id="free room of the present node may reduce the number",
        ),
        pytest.param(
            [pod(1000)], 1000,
            [("ask with at least one more node like n", "--add-nodes 1 --like n")],
            id="a single node is never too many",
        ),
        pytest.param([pod(1000, "0/1 nodes are available: 1 node(s) had taints")], 0, [],
                     id="no pod lacks room"),
        pytest.param([pod(9000)], 0, [], id="no node is large enough"),
    ],
)  # fmt: skip
def test_the_estimate_of_new_nodes_names_a_lower_bound(pending, requested, expected):
    steps = estimated_nodes("ask with", pending, [node(requested)])
    assert [(one.words, one.options) for one in steps] == expected
