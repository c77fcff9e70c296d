"""Which NodeOverlays are valid."""

from __future__ import annotations

import pytest

from fairlead.conformance.karpenter.provisioning import decide_provisioning

TYPE = {
    "name": "t4",
    "requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["t4"]}
    ],
    "capacity": {"cpu": "4", "memory": "16Gi", "pods": "20"},
    "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 1.0}],
}
REFERENCE = {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}
POOL = {
    "metadata": {"name": "open"},
    "spec": {"template": {"spec": {"nodeClassRef": REFERENCE, "requirements": []}}},
}


def status(requirements=(), **spec):
    overlay = {"metadata": {"name": "o"}, "spec": {"requirements": list(requirements), **spec}}
    found = decide_provisioning(
        {
            "now": "2026-01-01T00:00:00Z",
            "options": {"featureGates": {"NodeOverlay": True}},
            "instanceTypes": [TYPE],
            "nodePools": [POOL],
            "nodeOverlays": [overlay],
        }
    )
    return found["overlays"]["o"]


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage", "pods"])
def test_an_overlay_that_adds_a_restricted_resource_is_invalid(resource):
    # upstream: nodeoverlay_validation.go:validateCapacity
    assert status(capacity={resource: "100"}) == "False/RuntimeValidation"


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("karpenter.sh/foo", "In", ["a"]),
        ("kubernetes.io/hostname", "In", ["a"]),
        ("karpenter.sh/capacity-type", "In", ["unknown"]),
        ("team", "In", []),
        ("team", "NotIn", []),
        ("example.com/instance-cpu", "Gt", ["a"]),
    ],
)
def test_an_overlay_with_an_invalid_requirement_is_invalid(key, operator, values):
    # upstream: nodeoverlay_validation.go:validateRequirements
    requirement = {"key": key, "operator": operator, "values": values}
    assert status([requirement], price="0.5") == "False/RuntimeValidation"


def test_an_overlay_of_another_resource_is_valid():
    assert status(capacity={"example.com/fuse": "2"}) == "True/ValidationSucceeded"
