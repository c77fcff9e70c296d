"""The volume limits and devices of the nodes that a simulated autoscaler adds."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.node.test_node_copy import LIMITED
from tests.unit.whatif.planner.test_fit_elastic import POOL, fitted  # noqa: F401
from tests.unit.whatif.planner.test_pod_claim import (
    CLASS,
    DEVICE_CLASS,
    FROM_TEMPLATE,
    SCRATCH,
    TEMPLATE,
    devices_of,
)

from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.whatif.configuration.autoscaling.node_dependent import (
    with_group_dependents,
    with_type_dependents,
)


def kinds(dependents):
    return [one["kind"] for one in dependents.objects]


def group(node_type):
    labels = {INSTANCE_TYPE: node_type}
    template = {"metadata": {"labels": labels}, "status": {}}
    return NodeGroupSpec(id="g", minimum=0, maximum=9, labels={"pool": "a"}, template=template)


@pytest.mark.parametrize("karpenter", [False, True])
def test_volume_limits_hold_on_added_nodes(fitted, make, karpenter):  # noqa: F811
    """Each of three nodes attaches two volumes, although four pods of one core would fit."""
    labels = {INSTANCE_TYPE: "small", NODE_POOL: "default"} if karpenter else {"pool": "a"}
    web = make.workload(replicas=0, volumes=[SCRATCH])
    limited = {**LIMITED, "metadata": {"name": "a"}}
    objects = [make.node("a", **labels), limited, CLASS, web, *([POOL] if karpenter else [])]
    found, _ = fitted(*objects, karpenter=karpenter)
    nodes = 1 + found.autoscaling.added
    assert found.autoscaling.added
    assert found.count == 2 * nodes


def test_a_group_copies_its_node(make, found):
    """The new node has copies under its own name; the notes state the node."""
    node = make.node("a", pool="a", **{INSTANCE_TYPE: "small"})
    objects = found(node, LIMITED, devices_of("a", 1))
    config, notes = with_group_dependents(ClusterAutoscalerConfig((group("small"),)), objects)
    [spec] = config.groups
    csi, slices = (one.manifest for one in spec.dependents.creations("g-new-1"))
    assert csi["metadata"]["name"] == "g-new-1"
    assert slices["spec"]["nodeName"] == slices["spec"]["pool"]["name"] == "g-new-1"
    deleted = [one.target.name for one in spec.dependents.deletions("g-new-1")]
    assert deleted == ["g-new-1", "a-gpus-g-new-1"]
    assert "g a" in notes[0]


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_group_copies_its_first_node_by_name(make, found, names):
    nodes = [make.node(name, pool="a", **{INSTANCE_TYPE: "small"}) for name in names]
    objects = found(*nodes, devices_of("a", 1), devices_of("b", 2))
    _, notes = with_group_dependents(ClusterAutoscalerConfig((group("small"),)), objects)
    assert "g a" in notes[0]


def test_devices_of_another_type_are_unknown(make, found):
    """A group or NodePool whose nodes have another type gets the volume limits only."""
    node = make.node("a", pool="a", **{INSTANCE_TYPE: "small", NODE_POOL: "default"})
    objects = found(node, LIMITED, devices_of("a", 1))
    config, _ = with_group_dependents(ClusterAutoscalerConfig((group("large"),)), objects)
    assert kinds(config.groups[0].dependents) == ["CSINode"]
    karpenter, _ = with_type_dependents(KarpenterConfig(pools=(), types=()), objects)
    assert kinds(karpenter.dependents.of("default", "small")) == ["CSINode", "ResourceSlice"]
    assert kinds(karpenter.dependents.of("other", "small")) == ["CSINode", "ResourceSlice"]
    assert kinds(karpenter.dependents.of("default", "large")) == ["CSINode"]
    assert kinds(karpenter.dependents.of("other", "large")) == []


def test_nodes_in_service_are_copied_first_and_missing_objects_are_not_assumed(make, found):
    """A cordoned node is copied only if no other node of the group has a CSINode."""
    cordoned = make.node("a", pool="a")
    cordoned["spec"] = {"unschedulable": True}
    other = {**LIMITED, "metadata": {"name": "b"}}
    plain = ClusterAutoscalerConfig((group("small"),))
    config, _ = with_group_dependents(
        plain, found(cordoned, make.node("b", pool="a"), LIMITED, other)
    )
    assert config.groups[0].dependents.like == "b"
    assert with_group_dependents(plain, found(cordoned)) == (plain, ())


@pytest.mark.parametrize("karpenter", [False, True])
def test_pods_use_the_devices_of_added_nodes(fitted, make, karpenter):  # noqa: F811
    """Two nodes of eight cores in all are added; each node has two devices."""
    labels = {INSTANCE_TYPE: "small", NODE_POOL: "default"} if karpenter else {"pool": "a"}
    web = make.workload(replicas=0, resourceClaims=FROM_TEMPLATE)
    pools = [POOL] if karpenter else []
    objects = make.node("a", **labels), devices_of("a", 2), DEVICE_CLASS, TEMPLATE, *pools, web
    found, _ = fitted(*objects, karpenter=karpenter)
    assert (found.count, found.autoscaling.added) == (6, 2)
