"""The disruption loop while NodePools are not Ready, or over their limits."""

from __future__ import annotations

import pytest

from fairlead.conformance.karpenter.disruption import decide_disruption

ZONE, CAPACITY = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
TYPE, POOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"
CREATED = "2026-03-03T08:00:00Z"
SIZE = {"cpu": "6", "memory": "8Gi", "pods": "30"}
SMALLER = SIZE | {"cpu": "4"}
CLASS = {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}
LABELS = {ZONE: "a", CAPACITY: "on-demand", TYPE: "t", POOL: "default"}
REGISTERED = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}


def condition(kind, status="True"):
    return {"type": kind, "status": status, "reason": kind, "lastTransitionTime": CREATED}


def pool(status, limits):
    spec = {"template": {"spec": {"nodeClassRef": CLASS}}, "limits": limits}
    spec["disruption"] = {"budgets": [{"nodes": "100%"}]}
    status = {"conditions": [condition("Ready", status)]}
    return {"metadata": {"name": "default"}, "spec": spec, "status": status}


def claim(name, *conditions):
    kinds = ("Launched", "Registered", "Initialized", "Consolidatable", *conditions)
    status = {"conditions": [condition(kind) for kind in kinds], "nodeName": name}
    status |= {"providerID": f"p:///{name}", "capacity": SIZE, "allocatable": SIZE}
    meta = {"name": name, "creationTimestamp": CREATED, "labels": LABELS}
    return {"metadata": meta, "spec": {"nodeClassRef": CLASS}, "status": status}


def node(name):
    labels = LABELS | REGISTERED | {"kubernetes.io/hostname": name}
    return {
        "metadata": {"name": name, "creationTimestamp": CREATED, "labels": labels},
        "spec": {"providerID": f"p:///{name}"},
        "status": {"capacity": SIZE, "allocatable": SIZE},
    }


def pod(name, cpu):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": f"pod-{name}", "creationTimestamp": CREATED},
        "spec": {"nodeName": name, "containers": [container]},
    }


def commands(names, *, ready=True, limits=None, conditions=(), with_pods=True, cpu="100m"):
    """Return the method and decision of each command that a loop starts."""
    offering = {"zone": "a", "capacityType": "on-demand", "price": 1.0}
    stated = {ZONE: "a", CAPACITY: "on-demand", TYPE: "t"}
    requirements = [{"key": k, "operator": "In", "values": [v]} for k, v in stated.items()]
    case = {
        "now": "2026-03-04T12:00:00Z",
        "instanceTypes": [
            {
                "name": "t",
                "requirements": requirements,
                "capacity": SMALLER,
                "offerings": [offering],
            }
        ],
        "nodePools": [pool("True" if ready else "False", limits or {})],
        "nodeClaims": [claim(name, *conditions) for name in names],
        "nodes": [node(name) for name in names],
        "pods": [pod(name, cpu) for name in names if with_pods],
    }
    found = decide_disruption(case)["reconcile"]["commands"]
    return [(one["method"], one["decision"]) for one in found]


@pytest.mark.parametrize(
    ("names", "conditions", "method"),
    [
        (("m", "n", "o"), (), "multi"),
        (("m", "n"), ("Drifted",), "drift"),
    ],
)
def test_no_node_with_pods_is_removed(names, conditions, method):
    """The simulation, which every such decision needs, fails without a NodePool."""
    assert commands(names, ready=True, conditions=conditions) == [(method, "delete")]
    assert commands(names, ready=False, conditions=conditions) == []


def test_empty_nodes_are_removed():
    assert commands(("m", "n"), ready=False, with_pods=False) == [("emptiness", "delete")]


@pytest.mark.parametrize(("limit", "found"), [("12", [("drift", "replace")]), ("11", [])])
def test_a_pool_over_its_limits_gets_no_replacement(limit, found):
    """upstream: provisioner.go:Create, although the simulation leaves out the candidate."""
    drifted = commands(("m", "n"), limits={"cpu": limit}, conditions=("Drifted",), cpu="3500m")
    assert drifted == found
