"""New nodes of a pool have the lasting taints of the pool, and the zones of its nodes."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.whatif.configuration.autoscaling.group_limit import GROUP_LABELS
from fairlead.whatif.snapshot.node_pool import (
    PoolNames,
    is_lasting_taint,
    managed_pool,
    node_traits,
    other_zones,
)


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
        pytest.param("node.cilium.io/agent-not-ready", False, id="a taint of a starting agent"),
        ("readiness.k8s.io/network", False),
        ("startup-taint.cluster-autoscaler.kubernetes.io/gpu", False),
    ],
)
def test_new_nodes_do_not_have_the_condition_taints_of_the_original_node(key, is_lasting):
    assert is_lasting_taint(key) is is_lasting


def test_an_interrupted_machine_stays_in_its_pool(make):
    event = {"aws-node-termination-handler/event-id": "spot-itn-5ec4"}
    made = (make.node("n", pool="x", **labels) for labels in ({}, event))
    usual, interrupted = (node_traits(decode_as(Node, one)) for one in made)
    assert interrupted == usual


@pytest.mark.parametrize(
    "label", [label for _, label, _ in GROUP_LABELS if not label.startswith("cluster.x-k8s.io/")]
)
def test_the_label_of_a_node_group_is_that_of_a_node_pool(label):
    """The label of Cluster API is on nodes only if its configuration says so."""
    assert managed_pool({"zone": "a", label: "web"}) == (label, "web")


@pytest.mark.parametrize(
    ("values", "is_one_pool"),
    [
        pytest.param(("a", "b"), True, id="the names of the nodes"),
        pytest.param(("i-0a", "i-0b"), True, id="the ids of the machines"),
        pytest.param(("b", "a"), False, id="the names of other nodes"),
        pytest.param(("x", "y"), False, id="other values"),
        pytest.param(("a", None), False, id="one node lacks the label"),
    ],
)
def test_labels_that_name_the_node_itself_do_not_divide_a_pool(make, values, is_one_pool):
    """For example, TopoLVM sets topology.topolvm.io/node, and eksctl sets the instance id."""
    found = set()
    for name, value in zip("ab", values, strict=True):
        node = make.node(name, **({} if value is None else {"own": value}))
        node["spec"] = {"providerID": f"aws:///eu-1a/i-0{name}"}
        found.add(node_traits(decode_as(Node, node)))
    assert (len(found) == 1) is is_one_pool


def test_the_number_of_a_machine_in_its_scale_set_is_no_id(make):
    """On Azure, the label of the first machine would differ from the label of the others."""
    found = set()
    for number in range(2):
        node = make.node(f"vmss00000{number}", shard="0")
        node["spec"] = {
            "providerID": f"azure:///virtualMachineScaleSets/a/virtualMachines/{number}"
        }
        found.add(node_traits(decode_as(Node, node)))
    assert len(found) == 1


def test_the_deprecated_zone_label_takes_precedence():
    """Otherwise the group has one zone here, and two zones in its simulated provider."""
    current, deprecated = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
    zones = ({current: "a", deprecated: zone} for zone in "xy")
    [other] = other_zones([{"metadata": {"name": "n", "labels": labels}} for labels in zones])
    assert other["metadata"]["labels"] == {current: "a", deprecated: "y"}


def test_a_label_without_a_value_is_the_name_of_a_pool():
    """kubeadm, OpenShift and Rancher label nodes with roles, such as node-role.../worker."""
    worker, other = {"node-role.kubernetes.io/worker": ""}, {"kubernetes.io/hostname": "a"}
    names = PoolNames.of(("node-role.kubernetes.io/worker",), [worker, other])
    assert (names.name(worker), names.name(other)) == ("worker", "")
