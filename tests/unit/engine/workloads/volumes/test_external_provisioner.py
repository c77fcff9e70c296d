"""Provisioning of volumes for claims that a stock persistent volume controller annotates."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.volumes.external_provisioner import ExternalProvisioner

SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"


def storage_class(mode="WaitForFirstConsumer"):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.x",
        "volumeBindingMode": mode,
    }


def claim(**annotations):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }


def annotate(world, **annotations):
    world.patch("PersistentVolumeClaim", "c", {"metadata": {"annotations": annotations}})
    world.run(seconds(10))


def volumes(world):
    return [key for key in world.objects if key[0] == "PersistentVolume"]


@pytest.fixture
def world(new_world, build):
    made = new_world(ExternalProvisioner(VolumesConfig()))
    made.load(build.node("n"), storage_class(), claim())
    return made


def test_an_annotated_claim_gets_a_volume_for_its_node(world):
    annotate(world, **{PROVISIONER: "csi.x", SELECTED: "n"})
    assert len(volumes(world)) == 1


def test_a_claim_without_a_selected_node_waits(world):
    """The annotation with the provisioner stays when the selected node is removed."""
    annotate(world, **{PROVISIONER: "csi.x"})
    assert volumes(world) == []


def test_a_claim_gets_its_volume_after_its_selected_node_was_deleted(world):
    """The scheduler chooses another node, and provisioning starts again."""
    annotate(world, **{PROVISIONER: "csi.x", SELECTED: "gone"})
    assert SELECTED not in world.get("PersistentVolumeClaim", "c")["metadata"]["annotations"]
    assert volumes(world) == []
    annotate(world, **{SELECTED: "n"})
    assert len(volumes(world)) == 1
