"""The pools of nodes: virtual nodes do not count among the machines."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.comparison.node_pool import node_pools
from fairlead.whatif.question import what_if


@pytest.fixture
def answer(snapshot, make):
    """The answer for two more pods on a machine, beside a virtual node and a Fargate node."""
    fargate = {"eks.amazonaws.com/compute-type": "fargate"}
    nodes = [
        make.node("a", pool="web"),
        tainted(make.node("aci", "10k", type="virtual-kubelet")),
        tainted(make.node("fargate-1", "2", **fargate)),
    ]
    pod = make.pod("job", node_name="fargate-1")
    found = snapshot(*nodes, pod, make.workload(replicas=0))
    return what_if(found, ClusterChange(scale=("deploy/web=2",)))


def tainted(node):
    return node | {"spec": {"taints": [{"key": "virtual", "effect": "NoSchedule"}]}}


def cpu(pool):
    return (
        pool.requested_without.get("cpu", 0),
        pool.requested["cpu"],
        pool.allocatable.get("cpu"),
    )


@pytest.mark.parametrize(
    ("labels", "name"),
    [((), "all but virtual nodes"), (("pool",), "web")],
    ids=["all nodes", "pools"],
)
def test_virtual_nodes_are_a_pool_without_allocatable_amounts(answer, labels, name):
    machines, virtual = node_pools(answer.without, answer.changed, labels)
    assert (machines.name, machines.nodes, *cpu(machines)) == (name, 1, 0, 2000, 4000)
    assert (virtual.name, virtual.nodes, *cpu(virtual)) == ("virtual nodes", 2, 1000, 1000, None)


def test_the_sums_of_a_run_leave_out_virtual_nodes(answer):
    cpu = next(one for one in answer.changed.allocations if one.resource == "cpu")
    assert (cpu.requested_before, cpu.allocatable_before) == (0, 4000)
    assert (cpu.requested, cpu.allocatable) == (2000, 4000)
