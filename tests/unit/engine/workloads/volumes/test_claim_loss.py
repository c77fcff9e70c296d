"""Claims that have lost their volume."""

from __future__ import annotations

import pytest

from fairlead.engine.workloads.volumes.claim_event import ClaimEvents
from fairlead.engine.workloads.volumes.controller import Volumes

BOUND = "pv.kubernetes.io/bind-completed"


def claim(volume="v", *, bound=True, uid="c-uid"):
    meta = {"name": "c", "namespace": "ns", "uid": uid}
    if bound:
        meta["annotations"] = {BOUND: "yes"}
    made = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"},
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {}},
    }
    if volume:
        made["spec"]["volumeName"] = volume
    return made


def volume(uid="c-uid"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "storageClassName": "fast",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c"}
            | {"uid": uid},
        },
        "status": {"phase": "Bound"},
    }


def status(world):
    return world.get("PersistentVolumeClaim", "c")["status"]


@pytest.fixture
def world(new_world):
    return new_world(Volumes(output=ClaimEvents(), is_complete=True))


def test_a_claim_whose_volume_is_deleted_is_lost(world):
    world.load(claim(), volume())
    assert status(world)["phase"] == "Bound"
    world.delete("PersistentVolume", "v", namespace="")
    assert status(world) == {"phase": "Lost"}
    (event,) = world.events
    assert (event.type, event.reason) == ("Warning", "ClaimLost")
    assert event.note == "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert event.reporting_controller == "persistentvolume-controller"


def test_a_lost_claim_is_bound_again(world):
    """A volume that refers to the claim, such as a restored one, is bound to it."""
    world.load(claim(), volume())
    world.delete("PersistentVolume", "v", namespace="")
    world.create(volume())
    assert status(world)["phase"] == "Bound"


@pytest.mark.parametrize(
    ("held", "others", "reason", "beginning"),
    [
        pytest.param(
            claim(""), [], "ClaimLost", "Bound claim has lost reference", id="it names none"
        ),
        pytest.param(
            claim(), [volume("other")], "ClaimMisbound", "Two claims", id="another one has it"
        ),
    ],
)
def test_other_ways_to_lose_a_volume(world, held, others, reason, beginning):
    world.load(held, *others)
    assert status(world)["phase"] == "Lost"
    assert [event.reason for event in world.events] == [reason]
    assert world.events[0].note.startswith(beginning)


def test_a_claim_that_was_never_bound_stays_pending(world):
    """The claim names a volume that does not exist."""
    world.load(claim(bound=False))
    assert status(world)["phase"] == "Bound"
    assert world.events == []


def test_in_a_simulation_a_missing_volume_does_not_lose_the_claim(new_world):
    """A dump with claims may lack the volumes."""
    world = new_world(Volumes()).load(claim(), volume())
    world.delete("PersistentVolume", "v", namespace="")
    assert status(world)["phase"] == "Bound"
