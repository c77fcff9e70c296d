"""Changes of running pods that their nodes cannot satisfy or do not support."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.plugins.node_declared_feature_validator import (
    NodeDeclaredFeatureValidator,
)
from fairlead.apiserver.admission.plugins.pod_resize_validator import PodResizeValidator

SMALL = {"cpu": "1", "memory": "1Gi"}
LARGE = {"cpu": "8", "memory": "1Gi"}
ALLOCATABLE = {"cpu": "4", "memory": "8Gi"}
LINUX = {"kubernetes.io/os": "linux"}
DECLARED = [
    "GuaranteedQoSPodCPUResize",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
]


@pytest.fixture
def node(obj):
    """Makes Nodes with the name a."""

    def made(labels=LINUX, declared=()):
        status = {"allocatable": ALLOCATABLE, "declaredFeatures": list(declared)}
        return obj("Node", "a", "", metadata={"labels": labels}, status=status)

    return made


@pytest.fixture
def sized(pod):
    """Makes pods on node a with these requests; a change of the spec has another generation."""

    def made(requests, generation, qos="Guaranteed", node="a", **spec):
        found = pod(requests, nodeName=node, **spec)
        found["metadata"]["generation"] = generation
        return {**found, "status": {"qosClass": qos}}

    return made


def change(old, subresource="resize"):
    return {"operation": Operation.UPDATE, "old": old, "subresource": subresource}


# --- PodResizeValidator ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "labels", "why"),
    [
        (
            LARGE,
            LINUX,
            (
                "Node didn't have enough allocatable resources: cpu, requested: 8000, allocatable:"
                " 4000"
            ),
        ),
        (
            {"cpu": "8", "memory": "9Gi"},
            LINUX,
            (
                "Node didn't have enough allocatable resources: cpu, requested: 8000, allocatable:"
                " 4000; memory, requested: 9663676416, allocatable: 8589934592"
            ),
        ),
        (
            SMALL,
            {"kubernetes.io/os": "windows"},
            'pod resize is only supported on linux nodes, node "a" is "windows"',
        ),
        (SMALL, {}, 'pod resize is only supported on linux nodes, node "a" is ""'),
    ],
)
def test_a_resize_that_the_node_can_never_satisfy_is_refused(
    gate, node, sized, requests, labels, why
):
    found = gate(PodResizeValidator()).has(node(labels))
    old, new = sized({}, 1), sized(requests, 2)
    assert found.refusal(new, **change(old)) == f'pods "x" is forbidden: {why}'


def test_a_resize_of_a_pod_whose_node_does_not_exist_is_refused(gate, sized):
    refusal = gate(PodResizeValidator()).refusal(sized(SMALL, 2), **change(sized({}, 1)))
    assert refusal == 'pods "x" is forbidden: node "a" not found'


def test_valid_resizes_and_other_writes_are_admitted(gate, node, sized):
    """A resize that fits, a pod without a node, another subresource, an unchanged generation."""
    found = gate(PodResizeValidator()).has(node())
    old = sized({}, 1)
    found.admits(sized({"cpu": "4"}, 2), **change(old))
    found.admits(sized(LARGE, 2, node=""), **change(sized({}, 1, node="")))
    found.admits(sized(LARGE, 2), **change(old, ""))
    found.admits(sized(LARGE, 1), **change(old))


# --- NodeDeclaredFeatureValidator --------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "qos", "lacking"),
    [
        ({"requests": LARGE}, "Guaranteed", "GuaranteedQoSPodCPUResize"),
        (
            {"requests": SMALL, "resources": {"requests": {"cpu": "2"}}},
            "Burstable",
            "InPlacePodLevelResourcesVerticalScaling",
        ),
        (
            {"requests": LARGE, "resources": {"requests": {"cpu": "2"}}},
            "Guaranteed",
            "GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling",
        ),
    ],
)
def test_a_change_that_needs_a_feature_missing_on_the_node_is_refused(
    gate, node, sized, spec, qos, lacking
):
    """The change is admitted if the node declares the features."""
    old, new = sized(SMALL, 1, qos), sized(generation=2, qos=qos, **spec)
    refusal = gate(NodeDeclaredFeatureValidator()).has(node()).refusal(new, **change(old))
    assert refusal == (
        f'pods "x" is forbidden: pod update requires features {lacking} which are not available on'
        ' node "a"'
    )
    gate(NodeDeclaredFeatureValidator()).has(node(declared=DECLARED)).admits(new, **change(old))


def test_a_resized_init_container_needs_a_feature_unless_it_is_a_sidecar(gate, node, sized):
    def asking(cpu, **restarts):
        init = {"name": "i", "image": "i", "resources": {"requests": {"cpu": cpu}}, **restarts}
        return {"qos": "Burstable", "initContainers": [init]}

    lacking = gate(NodeDeclaredFeatureValidator()).has(node())
    old, new = sized(SMALL, 1, **asking("1")), sized(SMALL, 2, **asking("2"))
    feature = "InPlacePodVerticalScalingInitContainers"
    assert feature in lacking.refusal(new, **change(old))
    gate(NodeDeclaredFeatureValidator()).has(node(declared=[feature])).admits(new, **change(old))
    sidecar = {"restartPolicy": "Always"}
    old, new = (sized(SMALL, n, **asking(str(n), **sidecar)) for n in (1, 2))
    lacking.admits(new, **change(old))


def test_changes_that_need_no_feature_are_admitted(gate, node, sized):
    """Changes of memory or of the status, pods that are not Guaranteed, and pods without a node."""
    found = gate(NodeDeclaredFeatureValidator()).has(node())
    old = sized(SMALL, 1)
    found.admits(sized({**SMALL, "memory": "2Gi"}, 2), **change(old))
    found.admits(sized(LARGE, 2, "Burstable"), **change(sized(SMALL, 1, "Burstable")))
    found.admits(sized(LARGE, 2), **change(old, "status"))
    found.admits(sized(LARGE, 2, node=""), **change(sized(SMALL, 1, node="")))
    found.admits({**sized(SMALL, 2)}, **change(old))
