"""Pods that share a volume or devices of one node, under a budget."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import budget, deployment, manifests

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.testing.storage_builders import make_claim, make_claim_volumes, make_volume
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.planner.node_drain.drain_plan import plan_drains, run_plan
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause
from fairlead.whatif.run.progress import NoProgress

PATCH = '{"spec":{"maxUnavailable":null,"minAvailable":0}}'
EDIT = f"kubectl -n default patch pdb web --type merge -p '{PATCH}'"


def cluster(make, mode, pods=2):
    """Nodes a and b; the pods on a share a volume with the access mode `mode`, or a device."""
    nodes = [make.node("a"), make.node("b")]
    if mode:
        claim = make_claim("data", modes=[mode], volume="pv", bound=True)
        volume = make_volume("pv", modes=[mode], claim="default/data")
        web = deployment(make, "web", ["a"] * pods, **make_claim_volumes("data"))
        return [*nodes, *web, *manifests("v1", claim, volume)]
    web = deployment(make, "web", ["a", "a"], **make_pod_resource_claims("gpu"))
    pods = [one["metadata"] for one in web if one["kind"] == "Pod"]
    for pod in pods:
        pod["uid"] = pod["name"]
    status = make_claim_status("a", "gpu-0", reserved_for=[pod["uid"] for pod in pods])
    claim = make_resource_claim("gpu", make_device_request(), status=status)
    devices = [make_slice("a"), make_slice("b"), make_device_class(), claim]
    return [*nodes, *web, *manifests("resource.k8s.io/v1", *devices)]


@pytest.mark.parametrize(
    ("mode", "claim"),
    [
        ("ReadWriteOnce", "PersistentVolumeClaim default/data"),
        ("ReadWriteMany", ""),
        ("", "ResourceClaim default/gpu"),
    ],
)
def test_a_budget_that_evicts_them_one_by_one_blocks_the_drain(
    planner, experiment, make, mode, claim
):
    """The simulated drain ends only if nothing is blocked, and after the proposed change."""
    objects = cluster(make, mode)
    guarded = [*objects, budget("web", maxUnavailable=1)]
    plan = plan_drains(planner(*guarded), ["a"], NoProgress())
    found = [(one.cause, one.owner, one.why, one.edit) for one in plan.blockers]
    why = (
        f"maxUnavailable 1 allows the eviction of 1 of 2 pods that share {claim}; "
        "the new pods wait until all have left the node"
    )
    assert found == ([(BlockCause.BUDGET_NEVER, "pdb/default/web", why, EDIT)] if claim else [])
    edited = [*objects, budget("web", minAvailable=0)]
    free = plan_drains(planner(*edited), ["a"], NoProgress())
    assert free.blockers == []
    for limits in (edited, guarded):
        run_plan(free, experiment(*limits), NoProgress())
        assert bool(free.runs[0].unfinished) is bool(claim and limits is guarded)


@pytest.mark.parametrize(
    ("mode", "leaves"),
    [
        ("ReadWriteOnce", "no: other pods of the node use PersistentVolumeClaim default/data"),
        ("ReadWriteMany", "yes, to b"),
        ("", "no: other pods of the node use ResourceClaim default/gpu"),
    ],
)
def test_a_pod_that_shares_a_claim_cannot_leave_its_node_alone(snapshot, make, mode, leaves):
    found = explain_object(snapshot(*cluster(make, mode)), "node/a", SchedulerConfig(), NO_CHOICE)
    [table] = [one for one in found.tables if one.name == "pods"]
    assert [row["leaves"] for row in table.rows] == [leaves, leaves]


def test_a_pod_that_alone_uses_a_claim_can_leave_its_node(snapshot, make):
    """The trial that empties the node puts an equal pod back, which is not another pod."""
    pods = cluster(make, "ReadWriteOnce", pods=1)
    found = explain_object(snapshot(*pods), "node/a", SchedulerConfig(), NO_CHOICE)
    [table] = [one for one in found.tables if one.name == "pods"]
    assert [row["leaves"] for row in table.rows] == ["yes, to b"]
