"""Storage objects that are in use are not removed before they are unused."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.deletion.in_use_protection import FINALIZERS, InUseProtection

MOUNT = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


@pytest.fixture
def world(new_world):
    return new_world(InUseProtection())


def held(kind, name, *, namespace="ns", **fields):
    meta = {"name": name, "uid": f"uid-of-{name}", "finalizers": [FINALIZERS[kind]]}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields}


def claim(**spec):
    return held("PersistentVolumeClaim", "c", spec=spec)


def volume(phase, **spec):
    status = {"phase": phase}
    return held("PersistentVolume", "pv", namespace="", spec=spec, status=status)


def go(world, kind, name, namespace="ns"):
    world.delete(kind, name, namespace=namespace)
    return world.get(kind, name, namespace) is None


@pytest.mark.parametrize(
    ("node", "phase", "is_gone"),
    [("n1", "Running", False), ("n1", "Succeeded", False), ("", "Pending", True)],
    ids=["in use", "a finished pod counts", "one without a node does not"],
)
def test_a_claim_is_kept_while_a_pod_mounts_it(world, build, node, phase, is_gone):
    world.load(claim(), build.pod("a", node=node, phase=phase, volumes=[MOUNT]))
    assert go(world, "PersistentVolumeClaim", "c") is is_gone


@pytest.mark.parametrize(
    ("volume", "claim_name", "grace_s", "is_gone"),
    [
        (MOUNT, "c", 0, False),
        ({"name": "v", "ephemeral": {}}, "a-v", 0, True),
        ({"name": "v", "ephemeral": {}}, "a-v", 30, False),
    ],
    ids=["named", "ephemeral", "still stopping"],
)
def test_a_stopped_pod_does_not_protect_its_ephemeral_volumes(
    world, build, volume, claim_name, grace_s, is_gone
):
    """A finalizer keeps the pod, which owns the claim."""
    meta = {"deletionTimestamp": "2027-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace_s}
    pod = build.pod("a", volumes=[volume], meta={**meta, "finalizers": ["a/b"]})
    world.load(held("PersistentVolumeClaim", claim_name, spec={}), pod)
    assert go(world, "PersistentVolumeClaim", claim_name) is is_gone


def test_a_claim_is_removed_after_the_last_pod_that_mounts_it(world, build):
    world.load(claim(), *(build.pod(name, volumes=[MOUNT]) for name in "ab"))
    go(world, "PersistentVolumeClaim", "c")
    world.delete("Pod", "a", grace=0)
    assert world.get("PersistentVolumeClaim", "c") is not None
    world.delete("Pod", "b", grace=0)
    assert world.get("PersistentVolumeClaim", "c") is None


def test_a_volume_is_removed_when_it_is_no_longer_bound(world):
    world.load(volume("Bound"))
    assert not go(world, "PersistentVolume", "pv", "")
    world.patch_status("PersistentVolume", "pv", {"phase": "Released"}, namespace="")
    assert world.get("PersistentVolume", "pv", "") is None


def test_a_refused_write_is_repeated(world):
    """Otherwise, the object would stay forever."""
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, PatchObject) else None
    )
    world.load(claim())
    assert not go(world, "PersistentVolumeClaim", "c")
    down[0] = False
    world.run(seconds(1))
    assert world.get("PersistentVolumeClaim", "c") is None


def test_a_class_without_pods_is_removed(world):
    kind = "VolumeAttributesClass"
    one = {**held(kind, "gold", namespace=""), "apiVersion": "storage.k8s.io/v1"}
    world.load(one, claim(volumeAttributesClassName="gold"))
    assert not go(world, kind, "gold", "")
    patch = {"spec": {"volumeAttributesClassName": "silver"}}
    world.patch("PersistentVolumeClaim", "c", patch)
    sent = [one for one in world.log if one.target.kind == f"{kind}.storage.k8s.io"]
    assert [one.patch for one in sent] == [{"metadata": {"finalizers": None}}]


@pytest.mark.parametrize(
    "status",
    [
        {"currentVolumeAttributesClassName": "gold"},
        {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold", "status": "InProgress"}},
    ],
    ids=["the class that the volume still has", "the class that the volume is being changed to"],
)
def test_a_class_in_the_status_of_a_claim_is_kept(world, status):
    """The spec of the claim already names another class."""
    kind = "VolumeAttributesClass"
    one = {**held(kind, "gold", namespace=""), "apiVersion": "storage.k8s.io/v1"}
    world.load(one, {**claim(volumeAttributesClassName="silver"), "status": status})
    assert not go(world, kind, "gold", "")
    changed = dict.fromkeys(status) | {"currentVolumeAttributesClassName": "silver"}
    world.patch_status("PersistentVolumeClaim", "c", changed)
    sent = [one for one in world.log if one.target.kind == f"{kind}.storage.k8s.io"]
    assert [one.patch for one in sent] == [{"metadata": {"finalizers": None}}]


def test_other_finalizers_are_kept(world):
    more = claim()
    more["metadata"]["finalizers"].append("a.b/c")
    world.load(more)
    go(world, "PersistentVolumeClaim", "c")
    assert world.get("PersistentVolumeClaim", "c")["metadata"]["finalizers"] == ["a.b/c"]


@pytest.mark.parametrize(("phase", "is_gone"), [("Pending", False), ("Succeeded", True)])
def test_a_pod_group_is_kept_while_a_pod_of_it_has_not_finished(world, build, phase, is_gone):
    group = {**held("PodGroup", "train"), "apiVersion": "scheduling.k8s.io/v1alpha2"}
    world.load(group, build.pod("a", phase=phase, schedulingGroup={"podGroupName": "train"}))
    go(world, "PodGroup", "train")

    def sent():
        kind = "PodGroup.scheduling.k8s.io"
        return [one.patch for one in world.log if one.target.kind == kind]

    assert bool(sent()) is is_gone
    world.delete("Pod", "a", grace=0)
    assert sent() == [{"metadata": {"finalizers": None}}]
