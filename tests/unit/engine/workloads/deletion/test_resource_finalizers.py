"""Finalizers of operators are removed from custom resources whose deletion was requested."""

from __future__ import annotations

import pytest

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
