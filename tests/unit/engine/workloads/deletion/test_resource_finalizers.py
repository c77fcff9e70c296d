"""Finalizers of operators are removed from custom resources whose deletion was requested."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchObject
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.deletion.resource_finalizers import ResourceFinalizers

OPERATOR = "kubevirt.io/virtualMachineControllerFinalize"
KARPENTER = "karpenter.sh/termination"


@pytest.fixture
def world(new_world):
    return new_world(GarbageCollector(), ResourceFinalizers())


def resource(kind, *finalizers, owner="", **meta):
    meta = {"name": "vm", "namespace": "ns", "uid": kind, "finalizers": list(finalizers), **meta}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": owner, "name": "vm", "uid": owner}]
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


def test_a_resource_is_deleted_with_its_owner(world):
    owner = resource("VirtualMachine")
    world.load(owner, resource("VirtualMachineInstance", OPERATOR, owner="VirtualMachine"))
    world.delete("VirtualMachine", "vm")
    assert not world.objects


@pytest.mark.parametrize("order", [1, -1], ids=["collector first", "collector last"])
@pytest.mark.parametrize(
    ("policy", "is_orphaned"), [("orphan", True), ("foregroundDeletion", False)]
)
def test_the_garbage_collector_removes_its_finalizer_first(new_world, order, policy, is_orphaned):
    """No patch restores a finalizer that another patch has removed."""
    world = new_world(*[GarbageCollector(), ResourceFinalizers()][::order])
    owner = resource("VirtualMachine", OPERATOR, policy)
    world.load(owner, resource("VirtualMachineInstance", owner="VirtualMachine"))
    world.delete("VirtualMachine", "vm")
    patches = [one.patch["metadata"] for one in world.sent(PatchObject)]
    written = [meta["finalizers"] for meta in patches if "finalizers" in meta]
    assert written == [[OPERATOR], None]
    left = [(one["kind"], "ownerReferences" in one["metadata"]) for one in world.objects.values()]
    assert left == [("VirtualMachineInstance", False)] * is_orphaned


def test_a_resource_that_is_not_deleted_keeps_its_finalizers(world):
    kind = "VirtualMachine"
    world.load(resource(kind, OPERATOR))
    world.patch(kind, "vm", {"metadata": {"labels": {"a": "b"}}})
    assert world.get(kind, "vm")["metadata"]["finalizers"] == [OPERATOR]


def test_finalizers_of_simulated_controllers_stay(world):
    kind = "NodeClaim"
    world.load(resource(kind, OPERATOR, KARPENTER))
    world.delete(kind, "vm")
    assert world.get(kind, "vm")["metadata"]["finalizers"] == [KARPENTER]


def test_a_resource_that_was_being_deleted_in_the_dump_stays(world):
    kind = "VirtualMachine"
    world.load(resource(kind, OPERATOR, deletionTimestamp="2027-01-01T00:00:00Z"))
    world.patch(kind, "vm", {"metadata": {"labels": {"a": "b"}}})
    assert world.get(kind, "vm")["metadata"]["finalizers"] == [OPERATOR]
