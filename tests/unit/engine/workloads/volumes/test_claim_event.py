"""Events of claims without a volume: the reason why they wait, if events are recorded."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.compose import volume_controller
from fairlead.engine.workloads.config import VolumesConfig, WorkloadsConfig
from fairlead.engine.workloads.volumes.claim_event import ClaimEvents
from fairlead.engine.workloads.volumes.controller import Volumes

SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
CLASS = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
EXTERNAL = "Waiting for a volume to be created either by the external provisioner 'csi.x' or"


def claim(of="fast", **annotations):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def storage_class(mode="Immediate", provisioner="csi.x"):
    meta = {"name": "fast"}
    return {**CLASS, "metadata": meta, "provisioner": provisioner, "volumeBindingMode": mode}


@pytest.fixture
def world(new_world):
    return new_world(Volumes(output=ClaimEvents(), is_complete=True))


def events(world):
    return [
        (event.type, event.reason, event.reporting_controller, event.note) for event in world.events
    ]


@pytest.mark.parametrize(
    ("case", "there", "type_", "reason", "note"),
    [
        (
            "it has no class",
            [claim("")],
            "Normal",
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
        (
            "its class is not there",
            [claim("nope")],
            "Warning",
            "ProvisioningFailed",
            'storageclass.storage.k8s.io "nope" not found',
        ),
        (
            "it waits for a pod",
            [storage_class("WaitForFirstConsumer"), claim()],
            "Normal",
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        (
            "nobody makes volumes of its class",
            [storage_class(provisioner="kubernetes.io/no-provisioner"), claim()],
            "Warning",
            "ProvisioningFailed",
            "no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
    ],
)
def test_an_event_has_the_reason_why_a_claim_waits(world, case, there, type_, reason, note):
    world.load(*there)
    assert events(world) == [(type_, reason, "persistentvolume-controller", note)], case


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"capacity": {"storage": "500Mi"}}, "requested PV is too small"),
        ({"storageClassName": "slow"}, "storageClassName does not match"),
        ({"volumeMode": "Block"}, "incompatible volumeMode"),
        ({"accessModes": ["ReadOnlyMany"]}, "incompatible accessMode"),
        ({"capacity": {"storage": "1Mi"}, "volumeMode": "Block"}, "requested PV is too small"),
    ],
)
def test_an_event_has_the_reason_why_a_claim_cannot_use_its_volume(world, more, why):
    named, spec = claim(), {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    named["spec"]["volumeName"] = "v"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {**spec, "capacity": {"storage": "2Gi"}, **more},
    }
    world.load(volume, named)
    note = f'Cannot bind to requested volume "v": {why}'
    assert events(world) == [("Warning", "VolumeMismatch", "persistentvolume-controller", note)]


def test_no_event_is_recorded_twice(world):
    """The claim is synced again without another event."""
    world.load(claim("nope"))
    world.patch("PersistentVolumeClaim", "c", {"metadata": {"labels": {"a": "b"}}})
    assert len(world.events) == 1


def test_provisioners_record_events(world):
    """The events are about the claim, with the provisioner as their source."""
    world.load(storage_class(), claim())
    world.run(seconds(60))
    waiting, begun, done = events(world)
    assert waiting[:3] == ("Normal", "ExternalProvisioning", "persistentvolume-controller")
    assert waiting[3].startswith(EXTERNAL)
    provisioner = 'External provisioner is provisioning volume for claim "ns/c"'
    assert begun == ("Normal", "Provisioning", "csi.x", provisioner)
    made = "Successfully provisioned volume pvc-u"
    assert done == ("Normal", "ProvisioningSucceeded", "csi.x", made)
    found = world.get("PersistentVolumeClaim", "c")
    assert {found["metadata"]["annotations"][name] for name in PROVISIONERS} == {"csi.x"}
    assert found["status"]["phase"] == "Bound"


def test_without_provisioners_only_the_wait_for_a_volume_is_recorded(new_world):
    """As in fairlead up --without provisioner, where the user's provisioner records its events."""
    config = WorkloadsConfig(serves_clients=True, starts_from_dump=False)
    world = new_world(volume_controller(VolumesConfig(provisions=False), config))
    world.load(storage_class(), claim())
    world.run(seconds(60))
    assert [reason for _, reason, _, _ in events(world)] == ["ExternalProvisioning"]


def test_a_chosen_node_ends_the_wait(world):
    """A volume is then provisioned for this node."""
    world.load(storage_class("WaitForFirstConsumer"), claim())
    chosen = {"metadata": {"annotations": {SELECTED: "n"}}}
    world.patch("PersistentVolumeClaim", "c", chosen)
    assert [reason for _, reason, _, _ in events(world)][:2] == [
        "WaitForFirstConsumer",
        "ExternalProvisioning",
    ]


def test_no_events_are_recorded_in_a_simulation(new_world):
    world = new_world(Volumes())
    world.load(storage_class(), claim())
    assert world.events == []
