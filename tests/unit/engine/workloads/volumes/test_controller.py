"""The binding, provisioning and deletion of volumes in a simulated cluster."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.api.objects import Lease, PersistentVolumeClaim, PodDisruptionBudget, StatefulSet
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
)
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.deletion.in_use_protection import FINALIZERS, InUseProtection
from fairlead.engine.workloads.volumes.claim_event import ClaimEvents
from fairlead.engine.workloads.volumes.controller import Volumes

ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
NO_PROVISIONER = "kubernetes.io/no-provisioner"


@pytest.fixture
def world(new_world):
    return new_world(Volumes(), GarbageCollector())


def test_heartbeats_and_budgets_are_not_passed_to_the_controller():
    """They change often while nodes fail, and concern no volume."""
    kinds = (Lease, PodDisruptionBudget, StatefulSet, PersistentVolumeClaim)
    changed = [Volumes.interest.includes((ObjectChanged, kind, "")) for kind in kinds]
    deleted = [Volumes.interest.includes((ObjectDeleted, kind, "")) for kind in kinds]
    assert changed == deleted == [False, False, True, True]


def claim(name="c", of="fast", size="1Gi", *, meta=None, **spec):
    if of is not None:
        spec["storageClassName"] = of
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ns", **(meta or {})},
        "spec": {"accessModes": ["ReadWriteOnce"], **spec},
    }


def volume(name="v", of="fast", size="1Gi", *, status=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of,
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            **spec,
        },
        "status": status or {},
    }


def provisioned(**fields):
    """Return a volume that a provisioner created."""
    one = volume(**fields)
    one["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "csi.x"}
    return one


def meant_for(name, uid=""):
    reference = {"kind": "PersistentVolumeClaim", "namespace": "ns", "name": name}
    return {"claimRef": reference | ({"uid": uid} if uid else {})}


def storage_class(name="fast", provisioner="csi.x", *, waits=False, annotations=None, **more):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations or {}},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **more,
    }


def volume_of(world, name="c"):
    """Return the volume of the claim, if both refer to each other; otherwise None."""
    found = world.get("PersistentVolumeClaim", name)
    bound_to = found["spec"].get("volumeName")
    if bound_to is None:
        assert found.get("status", {}).get("phase") != "Bound"
        return None
    theirs = world.get("PersistentVolume", bound_to, "")
    reference = theirs["spec"]["claimRef"]
    assert (reference["name"], reference["uid"]) == (name, found["metadata"]["uid"])
    assert (found["status"]["phase"], theirs["status"]["phase"]) == ("Bound", "Bound")
    assert found["metadata"]["annotations"][BOUND] == "yes"
    return bound_to


def phase(world, name):
    return world.get("PersistentVolume", name, "")["status"]["phase"]


def volumes(world):
    return sorted(name for kind, _, name in world.objects if kind == "PersistentVolume")


# --- claims of a class that binds at once ----------------------------------------------------


def test_a_new_volume_is_available(world):
    """It is available until it is bound to a claim."""
    world.create(volume())
    assert phase(world, "v") == "Available"


@pytest.mark.parametrize("claim_first", [True, False])
def test_a_claim_gets_the_smallest_matching_volume(claim_first, world):
    """It does not matter which was created first."""
    there = [volume("big", size="9Gi"), volume("mid", size="3Gi"), volume("tiny", size="1Gi")]
    there = [claim(size="2Gi"), *there] if claim_first else [*there, claim(size="2Gi")]
    world.load(*there)
    assert volume_of(world) == "mid"
    annotations = world.get("PersistentVolume", "mid", "")["metadata"]["annotations"]
    assert annotations == {BY_CONTROLLER: "yes"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(volume(of="slow"), id="of another class"),
        pytest.param(volume(size="500Mi"), id="too small"),
        pytest.param(volume(accessModes=["ReadOnlyMany"]), id="with other access modes"),
        pytest.param(volume(volumeMode="Block"), id="a raw device"),
        pytest.param(volume(**meant_for("other")), id="for another claim"),
        pytest.param(volume(**meant_for("c", "uid-before")), id="for a former claim of its name"),
    ],
)
def test_volumes_that_do_not_match_a_claim(other, world):
    """The claim waits for another volume."""
    world.load(other, claim())
    assert volume_of(world) is None
    world.create(volume("next"))
    assert volume_of(world) == "next"


def test_a_volume_with_fewer_access_modes_is_preferred_to_a_smaller_one(world):
    """A volume that several nodes can mount is kept for claims that need it."""
    shared = volume("shared", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    world.load(shared, volume("single", size="9Gi"), claim())
    assert volume_of(world) == "single"
    world.create(claim("d"))
    assert volume_of(world, "d") == "shared"


def test_a_selector_restricts_the_volumes(world):
    """The selector matches labels."""
    gold = volume("gold", size="9Gi")
    gold["metadata"]["labels"] = {"tier": "gold"}
    world.load(volume(), gold, claim(selector={"matchLabels": {"tier": "gold"}}))
    assert volume_of(world) == "gold"


def test_two_claims_do_not_share_a_volume(world):
    """The second claim waits."""
    world.load(volume(), claim("c"), claim("d"))
    assert (volume_of(world, "c"), volume_of(world, "d")) == ("v", None)


def test_a_volume_with_a_claim_reference_is_preferred(world):
    """Its size does not matter; this also holds for a class that waits."""
    world.load(storage_class(waits=True), volume("a"), volume("v", size="9Gi", **meant_for("c")))
    world.create(claim())
    assert volume_of(world) == "v"
    assert "annotations" not in world.get("PersistentVolume", "v", "")["metadata"]


def test_a_claim_that_names_a_volume_gets_it(world):
    """It is bound once the volume exists, but never to a volume reserved for another claim."""
    world.load(volume("a"), claim(volumeName="v"), claim("d", volumeName="taken"))
    world.create(claim("e", size="9Gi", volumeName="a"))
    world.create(volume("taken", **meant_for("other")))
    world.create(volume("v"))
    assert volume_of(world) == "v"
    annotations = world.get("PersistentVolumeClaim", "c")["metadata"]["annotations"]
    assert annotations == {BOUND: "yes"}
    assert phase(world, "a") == phase(world, "taken") == "Available"


def test_loaded_bound_claims_stay_bound(world):
    """Nothing is written about them."""
    annotations = {"annotations": {BOUND: "yes"}, "uid": "u"}
    bound = claim(meta=annotations, volumeName="v") | {"status": {"phase": "Bound"}}
    world.load(bound, volume(**meant_for("c", "u"), status={"phase": "Bound"}))
    assert world.log == []


# --- volumes are made ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provisions_old", "made"), [(False, None), (True, "pvc-u")], ids=["a dump", "a control plane"]
)
def test_an_old_claim_of_a_dump_shows_that_its_provisioner_fails(new_world, provisions_old, made):
    """If the claim is deleted and created again, it gets a volume, as other new claims do."""
    world = new_world(Volumes(provisions_old=provisions_old), GarbageCollector())
    old = {"uid": "u", "creationTimestamp": "1969-12-31T23:55:00Z"}
    world.load(storage_class(), claim(meta=old))
    world.run(seconds(60))
    assert volume_of(world) == made
    world.delete("PersistentVolumeClaim", "c")
    world.create(claim(meta={"uid": "v"}))
    world.run(seconds(60))
    assert volume_of(world) == "pvc-v"


def test_a_volume_is_provisioned_after_a_delay(new_world):
    """It is provisioned for a claim without a matching volume, with the settings of its class."""
    world = new_world(Volumes(VolumesConfig(provision_delay=seconds(5))))
    world.load(storage_class(reclaimPolicy="Retain"), claim(meta={"uid": "u"}, size="3Gi"))
    world.run(seconds(4))
    assert volumes(world) == []
    world.run(seconds(1))
    assert volume_of(world) == "pvc-u"
    made = world.get("PersistentVolume", "pvc-u", "")
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["csi"] == {"driver": "csi.x", "volumeHandle": "pvc-u"}
    assert made["metadata"]["annotations"] == {"pv.kubernetes.io/provisioned-by": "csi.x"}


def test_a_changed_claim_does_not_delay_its_provisioning(new_world):
    """The claim is changed before its volume is made."""
    world = new_world(Volumes(VolumesConfig(provision_delay=seconds(5))))
    world.load(storage_class(), claim())
    world.run(seconds(3))
    world.patch("PersistentVolumeClaim", "c", {"metadata": {"labels": {"a": "b"}}})
    world.run(seconds(2))
    assert volume_of(world) is not None


def test_the_storage_class_at_the_end_of_the_delay_counts(world):
    """The class at the time of provisioning counts."""
    world.load(claim())
    world.create(storage_class())
    world.delete("StorageClass", "fast", namespace="")
    world.run(seconds(5))
    assert volumes(world) == []
    world.create(storage_class())
    world.run(seconds(1))
    assert volume_of(world) is not None


def test_binding_may_have_a_delay(new_world):
    """The delay applies to existing volumes, too."""
    world = new_world(Volumes(VolumesConfig(bind_delay=seconds(2))))
    world.load(volume(), claim())
    assert volume_of(world) is None
    world.run(seconds(2))
    assert volume_of(world) == "v"


def test_a_volume_created_during_the_delay_is_used(world):
    """No other volume is provisioned then."""
    world.load(storage_class(), claim())
    world.create(volume())
    world.run(seconds(9))
    assert (volume_of(world), volumes(world)) == ("v", ["v"])


def test_local_volumes_are_not_provisioned(world):
    """The class has no provisioner."""
    world.load(storage_class(provisioner=NO_PROVISIONER), claim())
    world.run(seconds(60))
    assert volumes(world) == []


def test_a_claim_deleted_during_the_delay_gets_no_volume(world):
    """No volume is provisioned for a deleted or terminating claim."""
    terminating = claim("d", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    world.load(storage_class(), claim(), terminating)
    world.delete("PersistentVolumeClaim", "c")
    world.run(seconds(60))
    assert volumes(world) == []


# --- classes that wait -----------------------------------------------------------------------


def select(world, node, name="c"):
    world.patch("PersistentVolumeClaim", name, {"metadata": {"annotations": {SELECTED: node}}})


def reach(world, name):
    affinity = world.get("PersistentVolume", name, "")["spec"].get("nodeAffinity")
    if affinity is None:
        return None
    (term,) = affinity["required"]["nodeSelectorTerms"]
    return {one["key"]: one["values"] for one in term["matchExpressions"]}


@pytest.mark.parametrize(
    ("more", "class_more", "expected"),
    [
        pytest.param([], {}, {ZONE: ["z1"]}, id="zones, if nobody says anything"),
        pytest.param(
            [],
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "rack", "values": ["r"]}]}]},
            {"rack": ["r"]},
            id="what the class says",
        ),
        pytest.param(
            [
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": "n"},
                    "spec": {"drivers": [{"name": "csi.x", "topologyKeys": ["host", "gone"]}]},
                }
            ],
            {},
            {"host": ["n"]},
            id="what the driver says",
        ),
    ],
)
def test_a_claim_waits_until_a_node_is_chosen(more, class_more, expected, world, build):
    """The volume is then provisioned in the topology of the node."""
    node = build.node("n", labels={ZONE: "z1", "rack": "r", "host": "n"})
    world.load(node, *more, storage_class(waits=True, **class_more), volume(), claim())
    world.run(seconds(60))
    assert volume_of(world) is None
    select(world, "n")
    world.run(seconds(1))
    assert reach(world, volume_of(world)) == expected


def test_a_node_without_topology_labels_gives_no_node_affinity(world, build):
    """The volume is accessible from all nodes."""
    world.load(build.node("n"), storage_class(waits=True), claim())
    select(world, "n")
    world.run(seconds(1))
    assert reach(world, volume_of(world)) is None


def test_a_deleted_selected_node_is_removed_from_the_claim(world):
    """The scheduler then chooses another node."""
    world.load(storage_class(waits=True), claim())
    select(world, "gone")
    world.run(seconds(1))
    assert SELECTED not in world.get("PersistentVolumeClaim", "c")["metadata"]["annotations"]
    assert volumes(world) == []


def test_csi_drivers_provision_for_in_tree_provisioners(world, build):
    """CSI migration is always on."""
    ebs = storage_class(provisioner="kubernetes.io/aws-ebs", waits=True)
    world.load(build.node("n"), ebs, claim(meta={"uid": "u"}))
    select(world, "n")
    world.run(seconds(1))
    made = world.get("PersistentVolume", "pvc-u", "")
    assert made["spec"]["csi"]["driver"] == "ebs.csi.aws.com"


# --- the default class -----------------------------------------------------------------------


def test_a_claim_without_a_class_gets_the_default_one(world):
    """The newest default class is used; "" is an explicit class."""
    old = storage_class("old", annotations=DEFAULT)
    world.load(claim(of=None), claim("none", of=""), old)
    world.run(seconds(1))
    assert world.get("PersistentVolumeClaim", "c")["spec"]["storageClassName"] == "old"
    assert volume_of(world) is not None
    assert volume_of(world, "none") is None
    world.run(seconds(1))
    world.create(storage_class("new", annotations=DEFAULT))
    world.create(claim("d", of=None))
    assert world.get("PersistentVolumeClaim", "d")["spec"]["storageClassName"] == "new"


def test_a_claim_without_a_class_may_have_a_volume_without_one(world):
    """A volume without a class is tried first."""
    world.load(storage_class("old", annotations=DEFAULT), volume(of=""), claim(of=None))
    assert volume_of(world) == "v"
    assert "storageClassName" not in world.get("PersistentVolumeClaim", "c")["spec"]


def test_a_volume_without_a_class_is_bound_where_no_class_is_the_default(world):
    world.load(claim(of=None))
    world.create(volume(of=""))
    assert volume_of(world) == "v"


def test_the_former_annotation_of_a_default_class_counts(world):
    former = {"storageclass.beta.kubernetes.io/is-default-class": "true"}
    world.load(claim(of=None), storage_class("old", annotations=former))
    assert world.get("PersistentVolumeClaim", "c")["spec"]["storageClassName"] == "old"


# --- what goes wrong, and what goes ----------------------------------------------------------


def test_refused_writes_are_repeated(new_world):
    """They are repeated a second later."""
    left = [FailureReason.INTERNAL_ERROR] * 3

    def refuse(command):
        return left.pop() if isinstance(command, CreateObject) and left else None

    world = new_world(Volumes(), refuse=refuse)
    world.load(storage_class(), claim())
    world.run(seconds(3))
    assert volumes(world) == []
    world.run(seconds(6))
    assert volume_of(world) is not None


@pytest.mark.parametrize(
    ("policy", "expected"), [("Delete", None), ("Retain", "Released"), (None, "Released")]
)
def test_the_volume_of_a_deleted_claim(policy, expected, world):
    """The reclaim policy decides whether it is deleted or released."""
    more = {} if policy is None else {"persistentVolumeReclaimPolicy": policy}
    world.load(provisioned(**more), claim())
    world.delete("PersistentVolumeClaim", "c")
    left = world.get("PersistentVolume", "v", "")
    assert (left and left["status"]["phase"]) == expected
    world.create(claim())
    assert volume_of(world) is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"csi": {"driver": "csi.x", "volumeHandle": "h"}},
            'error getting deleter volume plugin for volume "v": no volume plugin matched',
        ),
        (
            {"hostPath": {"path": "/data"}},
            "host_path deleter only supports /tmp/.+ but received provided /data",
        ),
        ({"hostPath": {"path": "/tmp/data"}}, None),
    ],
)
def test_the_deletion_of_a_volume_without_provisioner_fails(source, message, world):
    """Temporary hostPath directories are deleted without a provisioner."""
    world.load(volume(persistentVolumeReclaimPolicy="Delete", **source), claim())
    world.delete("PersistentVolumeClaim", "c")
    left = world.get("PersistentVolume", "v", "")
    assert (left and left["status"]) == (message and {"phase": "Failed", "message": message})


def test_a_protected_volume_is_released_before_it_is_deleted(new_world):
    """Its finalizer protects it while it is bound."""
    world = new_world(Volumes(), InUseProtection())
    one = provisioned(persistentVolumeReclaimPolicy="Delete")
    one["metadata"]["finalizers"] = [FINALIZERS["PersistentVolume"]]
    world.load(one, claim())
    world.delete("PersistentVolumeClaim", "c")
    assert volumes(world) == []


@pytest.mark.parametrize("refused", [PatchStatus, DeleteObject], ids=["release", "deletion"])
def test_a_refused_release_or_deletion_of_a_volume_is_repeated(refused, world):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR
        if down[0] and isinstance(one, refused) and one.target.kind == "PersistentVolume"
        else None
    )
    down[0] = False
    world.load(provisioned(persistentVolumeReclaimPolicy="Delete"), claim())
    down[0] = True
    world.delete("PersistentVolumeClaim", "c")
    assert volumes(world) == ["v"]
    down[0] = False
    world.run(seconds(60))
    assert volumes(world) == []


def test_a_release_that_is_always_refused_is_repeated_at_each_resync(new_world):
    """The source is upstream's PVClaimBinderSyncPeriod of 15 s."""
    refused = []

    def refuse(command):
        if not isinstance(command, PatchStatus) or command.target.kind != "PersistentVolume":
            return None
        refused.append(command)
        return FailureReason.INTERNAL_ERROR

    world = new_world(Volumes())
    world.load(provisioned(), claim())
    world.refuse = refuse
    world.delete("PersistentVolumeClaim", "c")
    world.run(seconds(50))
    assert len(refused) == 4


def test_a_volume_whose_claim_was_deleted_before_the_start_is_reclaimed(new_world):
    """This requires a complete snapshot, not a dump that may lack claims."""
    one = provisioned(persistentVolumeReclaimPolicy="Delete", **meant_for("c", "old"))
    one["status"] = {"phase": "Bound"}
    assert volumes(new_world(Volumes(is_complete=True)).load(one)) == []
    assert volumes(new_world(Volumes()).load(one)) == ["v"]


def test_a_claim_deleted_during_its_binding_frees_its_volume(world):
    """Another claim gets the volume only when no binding of it is in progress."""
    world.load(provisioned(persistentVolumeReclaimPolicy="Delete"), storage_class("other"))
    world.stimuli.clear()
    controller = world.controllers[0]
    (take,) = controller.handle(ObjectChanged(decode(claim(meta={"uid": "u"}))), world.now)
    assert controller.handle(ObjectChanged(decode(claim("d", meta={"uid": "w"}))), world.now) == []
    controller.handle(ObjectDeleted(decode(claim(meta={"uid": "u"}))), world.now)
    world._perform(take)
    world.settle()
    assert volumes(world) == []


def test_a_recreated_claim_does_not_get_the_volume_of_the_old_claim(world):
    """The volume belonged to the deleted claim."""
    world.load(claim(meta={"uid": "new"}))
    world.create(volume(**meant_for("c", "old")))
    assert phase(world, "v") == "Released"
    assert volume_of(world) is None


@pytest.mark.parametrize("policy", ["Retain", "Delete"], ids=["released", "failed"])
@pytest.mark.parametrize("patch", [None, {"uid": None, "name": "d"}], ids=["free", "pre-bound"])
def test_a_volume_that_was_freed_by_hand_is_available(policy, patch, world):
    """A pending claim gets it."""
    world.load(volume(persistentVolumeReclaimPolicy=policy), claim())
    world.delete("PersistentVolumeClaim", "c")
    world.patch("PersistentVolume", "v", {"spec": {"claimRef": patch}}, namespace="")
    assert world.get("PersistentVolume", "v", "")["status"] == {"phase": "Available"}
    world.create(claim("d"))
    assert volume_of(world, "d") == "v"


def test_a_bound_claim_keeps_a_volume_that_was_freed_by_hand(world):
    """A pending claim does not get the volume."""
    world.load(volume(), claim("c"), claim("d"))
    world.patch("PersistentVolume", "v", {"spec": {"claimRef": None}}, namespace="")
    assert phase(world, "v") == "Bound"
    assert world.get("PersistentVolume", "v", "")["spec"]["claimRef"]["name"] == "c"
    assert volume_of(world, "d") is None


def test_nothing_is_written_twice(world):
    """An update may arrive before the outcome of the write that caused it."""
    world.load(volume())
    controller = world.controllers[0]
    (take,) = controller.handle(ObjectChanged(decode(claim(meta={"uid": "u"}))), world.now)
    assert controller.handle(CommandSucceeded(take), world.now) == []
    world._perform(take)
    world.settle()
    assert volumes(world) == ["v"]


def test_concurrent_bindings_do_not_give_two_claims_one_volume(world):
    """The second claim gets the volume if the first does not."""
    world.load(volume())
    controller = world.controllers[0]
    (first,) = controller.handle(ObjectChanged(decode(claim(meta={"uid": "u"}))), world.now)
    assert controller.handle(ObjectChanged(decode(claim("d", meta={"uid": "w"}))), world.now) == []
    controller.handle(CommandFailed(first, FailureReason.CONFLICT, "no"), world.now)
    other = decode(claim("d", meta={"uid": "w", "labels": {"new": "version"}}))
    (second,) = controller.handle(ObjectChanged(other), world.now)
    assert second.patch["spec"]["claimRef"]["name"] == "d"


def test_a_volume_kept_for_a_name_waits_for_a_claim_that_it_holds(world):
    """The volume is reserved by name, and bound to no claim until this claim fits."""
    world.load(claim(size="9Gi"), volume(**meant_for("c")))
    assert volume_of(world) is None
    world.delete("PersistentVolumeClaim", "c")
    assert phase(world, "v") == "Available"
    world.create(claim())
    assert volume_of(world) == "v"


# --- claims that are made for pods -----------------------------------------------------------

EPHEMERAL = {
    "name": "e",
    "ephemeral": {
        "volumeClaimTemplate": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]},
        }
    },
}


def test_the_claim_of_an_ephemeral_volume_is_deleted_with_the_pod(world, build):
    """Its name is made of the names of the pod and of the volume."""
    world.load(storage_class())
    world.create(build.pod("p", node="", meta={"uid": "u"}, volumes=[EPHEMERAL]))
    made = world.get("PersistentVolumeClaim", "p-e")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", "u", True)
    assert made["metadata"]["labels"] == {"a": "b"}
    world.run(seconds(1))
    assert volume_of(world, "p-e") is not None
    world.delete("Pod", "p")
    assert world.get("PersistentVolumeClaim", "p-e") is None
    assert volumes(world) == []


@pytest.mark.parametrize("is_gone", [False, True], ids=["the pod waits", "the pod is gone"])
def test_a_refused_claim_is_created_again_for_a_pod_that_exists(world, build, is_gone):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR
        if down[0] and isinstance(one, CreateObject) and one.target.name == "p-e"
        else None
    )
    world.load(storage_class())
    world.create(build.pod("p", node="", meta={"uid": "u"}, volumes=[EPHEMERAL]))
    world.run(seconds(10))
    assert world.get("PersistentVolumeClaim", "p-e") is None
    if is_gone:
        world.delete("Pod", "p", grace=0)
    down[0] = False
    world.run(seconds(10))
    assert (world.get("PersistentVolumeClaim", "p-e") is None) == is_gone


def test_a_refused_claim_of_a_stateful_set_is_created_again(new_world, build):
    refused = []

    def refuse(command):
        is_claim = (
            command.target.name == "data-db-0" if isinstance(command, CreateObject) else False
        )
        refused.extend([command] if is_claim and not refused else [])
        return FailureReason.TOO_MANY_REQUESTS if refused == [command] else None

    world = new_world(Workloads(), Volumes(), refuse=refuse)
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    owner = build.owned("StatefulSet", "db", 1, uid="sts", volumeClaimTemplates=[template])
    world.load(storage_class(), owner)
    assert len(refused) == 1
    refused.append(None)
    world.run(seconds(5))
    assert volume_of(world, "data-db-0") is not None


def test_a_finished_pod_gets_no_claim(world, build):
    """The pod would never use it."""
    world.load(build.pod("p", phase="Succeeded", volumes=[EPHEMERAL]), claim("any"))
    assert world.get("PersistentVolumeClaim", "p-e") is None


def test_claims_of_a_stateful_set_are_kept(new_world, build):
    """A recreated pod gets the same claim."""
    world = new_world(Workloads(), Volumes())
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    fields = {"volumeClaimTemplates": [template], "podManagementPolicy": "Parallel"}
    owner = build.owned("StatefulSet", "db", 2, uid="sts", **fields)
    world.load(storage_class(), owner)
    world.run(seconds(2))
    claims = [f"data-db-{i}" for i in range(2)]
    used = [volume_of(world, name) for name in claims]
    assert None not in used
    pod = world.get("Pod", "db-1")
    (source,) = pod["spec"]["volumes"]
    assert source == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    world.delete("Pod", "db-1", grace=0)
    world.run(seconds(2))
    assert world.get("Pod", "db-1")["metadata"]["uid"] != pod["metadata"]["uid"]
    assert [volume_of(world, name) for name in claims] == used


@pytest.mark.parametrize(
    ("policy", "after_scaling", "after_deleting"),
    [
        ({}, 2, 2),
        ({"whenScaled": "Delete"}, 1, 1),
        ({"whenDeleted": "Delete"}, 2, 0),
        ({"whenDeleted": "Delete", "whenScaled": "Delete"}, 1, 0),
    ],
)
def test_claims_follow_the_retention_policy_of_the_stateful_set(
    new_world, build, policy, after_scaling, after_deleting
):
    world = new_world(Workloads(), Volumes(), GarbageCollector())
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    fields = {
        "volumeClaimTemplates": [template],
        "podManagementPolicy": "Parallel",
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    world.load(storage_class(), build.owned("StatefulSet", "db", 2, uid="sts", **fields))
    world.run(seconds(2))
    world.delete("Pod", "db-0", grace=0)
    assert len(claims(world)) == 2
    world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    assert len(claims(world)) == after_scaling
    world.delete("StatefulSet", "db")
    assert world.pods(alive=False) == {}
    assert len(claims(world)) == after_deleting


def claims(world):
    return [key for key in world.objects if key[0] == "PersistentVolumeClaim"]


def test_an_older_pod_of_a_stateful_set_has_no_claim(new_world, build):
    """It does not mount the volume template that the set got later."""
    world = new_world(Volumes())
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    owner = build.owned("StatefulSet", "db", 1, uid="sts", volumeClaimTemplates=[template])
    world.load(owner, build.pod("db-0", ("StatefulSet", "db", "sts"), volumes=[EPHEMERAL]))
    claims = [name for kind, _, name in world.objects if kind == "PersistentVolumeClaim"]
    assert claims == ["db-0-e"]


def test_a_claim_is_created_once(build):
    """It is created once, although the pod changes before the claim exists."""
    controller, now = Volumes(), seconds(1)
    pod = decode(build.pod("p", node="", meta={"uid": "u"}, volumes=[EPHEMERAL]))
    (create,) = controller.handle(ObjectChanged(pod), now)
    assert create.target.name == "p-e"
    assert controller.handle(ObjectChanged(pod), now) == []


def uses(name):
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def test_missing_claims_of_a_dump_without_claims_are_created(world, build):
    """They are bound to volumes that every node can access."""
    world.load(build.pod("p", volumes=uses("data")), build.pod("q", node="", volumes=uses("data")))
    assert volume_of(world, "data") == "fairlead-ns-data"
    assert reach(world, "fairlead-ns-data") is None


def test_missing_volumes_of_a_dump_without_volumes_are_created(world):
    """The volumes are created for bound claims."""
    bound = claim("data", meta={"annotations": {BOUND: "yes"}}, volumeName="v")
    world.load(bound, claim("open"), storage_class(provisioner=NO_PROVISIONER))
    assert volumes(world) == ["v"]
    assert (volume_of(world, "data"), volume_of(world, "open")) == ("v", None)


def test_a_claim_missing_among_others_stays_missing(world, build):
    """A dump with other claims would contain this claim if it existed."""
    world.load(build.pod("p", node="", volumes=uses("data")), claim("other"))
    assert world.get("PersistentVolumeClaim", "data") is None


def test_claims_of_a_stateful_set_have_the_labels_of_its_selector(new_world, build):
    world = new_world(Workloads(), Volumes())
    meta = {"name": "data", "labels": {"own": "yes"}}
    fields = {"volumeClaimTemplates": [{"metadata": meta, "spec": claim()["spec"]}]}
    world.load(storage_class(), build.owned("StatefulSet", "db", 1, uid="sts", **fields))
    selected = build.owned("StatefulSet", "db", 1)["spec"]["selector"]["matchLabels"]
    made = world.get("PersistentVolumeClaim", "data-db-0")
    assert made["metadata"]["labels"] == {"own": "yes", **selected}


def test_an_event_tells_whether_the_claim_of_an_existing_pod_was_created(new_world, build):
    """Its claim is missing, although claims are created before their pods."""
    reasons = [FailureReason.FORBIDDEN]

    def refuse(command):
        return reasons.pop() if reasons and isinstance(command, CreateObject) else None

    volumes_controller = Volumes(output=ClaimEvents(), is_complete=True)
    world = new_world(Workloads(), volumes_controller, refuse=refuse)
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    owner = build.owned("StatefulSet", "db", 1, uid="sts", volumeClaimTemplates=[template])
    pod = build.pod("db-0", ("StatefulSet", "db", "sts"), volumes=uses("data-db-0"))
    world.load(storage_class(), owner, pod)
    world.run(seconds(5))
    notes = [event.note for event in world.events if event.regarding.kind == "StatefulSet"]
    refusal = "Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: refused"
    assert notes[0].startswith(refusal)
    assert notes[1:] == ["Create Claim data-db-0 Pod db-0 in StatefulSet db success"]


def test_an_event_about_a_claim_names_the_stateful_set_and_the_pod_of_this_claim(new_world, build):
    """The claims of several pods and StatefulSets are created at the same time."""
    world = new_world(Workloads(), Volumes(output=ClaimEvents(), is_complete=True))
    template = {"metadata": {"name": "data"}, "spec": claim()["spec"]}
    for name, replicas in (("db", 2), ("log", 1)):
        pods = [
            build.pod(f"{name}-{number}", ("StatefulSet", name, name), volumes=uses(claimed))
            for number in range(replicas)
            for claimed in [f"data-{name}-{number}"]
        ]
        fields = {"uid": name, "volumeClaimTemplates": [template]}
        world.load(build.owned("StatefulSet", name, replicas, **fields), *pods)
    world.run(seconds(5))
    found = [
        (event.regarding.name, event.note)
        for event in world.events
        if event.regarding.kind == "StatefulSet"
    ]
    assert sorted(found) == [
        (name, f"Create Claim data-{pod} Pod {pod} in StatefulSet {name} success")
        for name, pod in (("db", "db-0"), ("db", "db-1"), ("log", "log-0"))
    ]
