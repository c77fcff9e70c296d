"""VolumeBinding after the choice of a node: its assumptions, its writes and its wait."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import Code
from fairlead.engine.framework.interface import Preparation
from fairlead.testing.builders import make_node
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_csi_node,
    make_storage_class,
    make_volume,
)

HOST = "kubernetes.io/hostname"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
WAITING = "waiting"


class Placing:
    """A pod with the claims `names`, to be placed on one of two nodes."""

    def __init__(self, scene, *names, pod="incoming"):
        self.scene, self.plugin = scene, scene.plugin("VolumeBinding")
        self.pod = scene.pod(pod, **make_claim_volumes(*names))
        self.state = scene.started(self.plugin, self.pod)

    def reserve(self, node="a"):
        self.plugin.filter(self.state, self.pod, self.scene.table.find(node))
        assert self.plugin.reserve(self.state, self.pod, node) is None
        return self

    def unreserve(self, node="a"):
        self.plugin.unreserve(self.state, self.pod, node)

    def pre_bind(self, node="a"):
        return self.plugin.pre_bind(self.state, self.pod, node)

    def written(self, node="a"):
        """Return {object: patch} of the writes that PreBind requests."""
        return {one.target.name: one.patch for one in self.pre_bind(node).commands}

    def outcome(self, node="a"):
        """Return WAITING, "" if the volumes are bound, or the reason why they never will be."""
        status = self.plugin.is_prepared(self.state, self.pod, node)
        if status is None:
            return ""
        return WAITING if status.code is Code.WAIT else status.message


@pytest.fixture
def storage(scene):
    """A cluster of two nodes, a class that waits for the first consumer, and a claim."""
    scene.node("a")
    scene.node("b")
    scene.tell(make_storage_class(), make_claim("c"))
    return scene


def versioned(one, version):
    metadata = msgspec.structs.replace(one.metadata, resource_version=version)
    return msgspec.structs.replace(one, metadata=metadata)


def verdicts(scene, *names):
    """Return the verdict of VolumeBinding on each node for a pod with these claims."""
    return scene.verdicts(
        scene.plugin("VolumeBinding"), scene.incoming("next", **make_claim_volumes(*names))
    )


# --- assumptions --------------------------------------------------------------------------------


def test_an_assumed_volume_is_in_use(storage):
    """Other claims cannot get it in the next cycle, until the assumption is reverted."""
    local = make_storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.tell(local, make_volume("v"), make_claim("d"))
    placing = Placing(storage, "c").reserve()
    assert verdicts(storage, "d") == {"a": NO_MATCH, "b": NO_MATCH}
    assert verdicts(storage, "c") == {"a": "", "b": ""}
    placing.unreserve()
    assert verdicts(storage, "d") == {"a": "", "b": ""}


def test_an_assumed_claim_fits_only_its_node(storage):
    """This holds for other pods with the claim, until the assumption is reverted."""
    placing = Placing(storage, "c").reserve("b")
    assert verdicts(storage, "c") == {"a": NO_MATCH, "b": ""}
    placing.unreserve("b")
    assert verdicts(storage, "c") == {"a": "", "b": ""}


def test_bindings_in_the_api_are_not_reverted(storage):
    """A placement may fail after its selected node was written."""
    placing = Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", node="b"))
    placing.unreserve("b")
    assert verdicts(storage, "c") == {"a": NO_MATCH, "b": ""}


def test_an_older_update_does_not_revert_an_assumption(storage):
    """The update has a newer version, but was made before the decision was written."""
    Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", annotations={"note": "new"}))
    assert verdicts(storage, "c") == {"a": NO_MATCH, "b": ""}


def test_an_assumption_ends_with_its_object(storage):
    """A claim of the same name that is created afterwards has no assumption."""
    Placing(storage, "c").reserve("b")
    storage.untell(make_claim("c"))
    storage.tell(make_claim("c"))
    assert verdicts(storage, "c") == {"a": "", "b": ""}


def test_an_assumed_volume_that_is_created_again_is_free(storage):
    """A volume that is recreated under the same name has no assumption."""
    local = make_storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.tell(local, make_volume("v"), make_claim("d"))
    Placing(storage, "c").reserve()
    storage.untell(make_volume("v"))
    storage.tell(make_volume("v"))
    assert verdicts(storage, "d") == {"a": "", "b": ""}


def test_a_claim_reference_with_uid_confirms_the_assumption(storage):
    """Before, the reference had only the name."""
    storage.tell(make_volume("v", claim="default/c", claim_uid=""))
    placing = Placing(storage, "c").reserve()
    storage.tell(make_volume("v", claim="default/c", claim_uid="", labels={"note": "new"}))
    assert placing.outcome() == WAITING


def test_no_volumes_are_assumed_for_bound_claims(storage):
    """Nothing is written for the pod."""
    storage.tell(make_claim("c", volume="v", bound=True), make_volume("v", claim="default/c"))
    assert Placing(storage, "c").reserve().pre_bind() is None


# --- what is written -------------------------------------------------------------------------


def test_the_claim_is_written_into_the_volume(storage):
    """The reference has the uid, so that it does not mean a later claim of the same name."""
    storage.tell(versioned(make_volume("v"), "7"))
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "c",
        "uid": "uid-c",
    }
    assert Placing(storage, "c").reserve().written() == {
        "v": {
            "metadata": {
                "resourceVersion": "7",
                "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
            },
            "spec": {"claimRef": reference},
        }
    }


def test_a_volume_with_a_claim_reference_is_not_annotated(storage):
    """Without the annotation, the volume stays reserved when the binding is undone."""
    storage.tell(make_volume("v", claim="default/c", claim_uid=""))
    written = Placing(storage, "c").reserve().written()
    assert written["v"]["spec"]["claimRef"]["uid"] == "uid-c"
    assert written["v"]["metadata"] == {}


def test_a_volume_that_references_the_claim_is_not_written(storage):
    """The binding waits only for the claim."""
    storage.tell(make_volume("v", claim="default/c"))
    placing = Placing(storage, "c").reserve()
    assert placing.written() == {}
    assert placing.outcome() == WAITING


def test_the_selected_node_is_written_to_a_claim_to_be_provisioned(storage):
    """The write has the version of the claim that was read as its precondition."""
    storage.tell(versioned(make_claim("c"), "8"))
    assert Placing(storage, "c").reserve("b").written("b") == {
        "c": {
            "metadata": {
                "resourceVersion": "8",
                "annotations": {"volume.kubernetes.io/selected-node": "b"},
            }
        }
    }


def test_a_claim_with_the_selected_node_is_not_written(storage):
    """The claim already has this node."""
    storage.tell(make_claim("c", node="b"))
    placing = Placing(storage, "c").reserve("b")
    assert placing.written("b") == {}
    assert placing.outcome("b") == WAITING


def test_volumes_are_written_before_claims(storage):
    """The order is that of matching: the smallest claim first."""
    storage.tell(make_volume("v"), make_claim("big", size="5Gi"))
    placing = Placing(storage, "big", "c").reserve()
    assert list(placing.written()) == ["v", "big"]


@pytest.mark.parametrize(("args", "timeout_s"), [(None, 600), (30, 30)])
def test_the_bind_timeout_ends_the_wait(args, timeout_s, new_scene):
    """The default is ten minutes."""
    arguments = {} if args is None else {"VolumeBinding": {"bindTimeoutSeconds": args}}
    scene = new_scene(arguments)
    scene.node("a")
    scene.tell(make_storage_class(), make_claim("c"))
    preparation = Placing(scene, "c").reserve().pre_bind()
    assert isinstance(preparation, Preparation)
    assert preparation.timeout == seconds(timeout_s)
    assert preparation.on_timeout == "binding volumes: context deadline exceeded"


# --- what is waited for ----------------------------------------------------------------------


def bound_to_v():
    return make_claim("c", volume="v", bound=True)


def test_a_binding_is_complete_when_volume_and_claim_are_bound(storage):
    """The volume refers to the claim first, then the claim to the volume."""
    storage.tell(make_volume("v"))
    placing = Placing(storage, "c").reserve()
    assert placing.outcome() == WAITING
    storage.tell(make_volume("v", claim="default/c"))
    assert placing.outcome() == WAITING
    storage.tell(bound_to_v())
    assert placing.outcome() == ""


@pytest.mark.parametrize(
    ("volume", "reason"),
    [
        pytest.param(
            make_volume("v", claim="default/c", reach={HOST: ["b"]}),
            'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            id="moved",
        ),
        pytest.param(None, 'failed to check binding: could not find v1.PersistentVolume "v"',
                     id="gone"),
    ],
)  # fmt: skip
def test_volume_states_that_fail_a_binding(volume, reason, storage):
    """The volume has this state after the binding was written."""
    storage.tell(make_volume("v"))
    placing = Placing(storage, "c").reserve()
    if volume is None:
        storage.untell(make_volume("v"))
    else:
        storage.tell(volume)
    assert placing.outcome() == f"binding volumes: {reason}"


def test_a_binding_fails_if_a_client_resets_it(storage):
    """The reference to the claim was written, and then removed."""
    storage.tell(make_volume("v"))
    placing = Placing(storage, "c").reserve()
    storage.tell(make_volume("v", claim="default/c"), make_volume("v"))
    assert placing.outcome() == 'binding volumes: ClaimRef got reset for pv "v"'


def test_a_claim_is_provisioned_when_it_is_bound_to_an_accessible_volume(storage):
    """The binding waits through each intermediate state."""
    placing = Placing(storage, "c").reserve("b")
    assert placing.outcome("b") == WAITING
    storage.tell(make_claim("c", node="b"))
    assert placing.outcome("b") == WAITING
    storage.tell(make_claim("c", node="b", volume="v"))
    assert placing.outcome("b") == WAITING
    storage.tell(make_volume("v", claim="default/c", reach={HOST: ["b"]}))
    assert placing.outcome("b") == WAITING
    storage.tell(make_claim("c", node="b", volume="v", bound=True))
    assert placing.outcome("b") == ""


def test_a_provisioned_volume_that_is_not_accessible_fails_the_binding(storage):
    """The provisioner ignored the selected node."""
    placing = Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", node="b", volume="v"))
    storage.tell(make_volume("v", claim="default/c", reach={HOST: ["a"]}))
    reason = 'pv "v" node affinity doesn\'t match node "b": no matching NodeSelectorTerms'
    assert placing.outcome("b") == f"binding volumes: {reason}"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(
            make_claim("c", annotations={"other": "x"}),
            'provisioning failed for PVC "c"',
            id="a provisioner that gave up took the node out",
        ),
        pytest.param(
            make_claim("c", node="elsewhere"),
            'provisioning failed for PVC "c"',
            id="another node was chosen",
        ),
        pytest.param(
            make_claim("c"),
            'selectedNode annotation reset for PVC "c"',
            id="all annotations are gone",
        ),
        pytest.param(
            None,
            'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/c"',
            id="it is gone",
        ),
    ],
)
def test_claim_states_that_fail_provisioning(claim, reason, storage):
    """The claim has this state after the selected node was written."""
    placing = Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", node="b"))
    if claim is None:
        storage.untell(make_claim("c"))
    else:
        storage.tell(claim)
    assert placing.outcome("b") == f"binding volumes: {reason}"


def test_the_wait_ends_if_the_node_is_deleted(storage):
    """The pod cannot be bound to a deleted node."""
    placing = Placing(storage, "c").reserve("b")
    storage.untell(make_node("b"))
    reason = 'failed to get node "b": node "b" not found'
    assert placing.outcome("b") == f"binding volumes: {reason}"


@pytest.mark.parametrize("uid", [None, "another"])
def test_the_wait_ends_if_the_pod_is_deleted(uid, storage):
    """The wait also ends if another pod has the same name now."""
    placing = Placing(storage, "c").reserve("b")
    storage.gone(placing.pod)
    if uid is not None:
        meta = msgspec.structs.replace(placing.pod.pod.metadata, uid=uid)
        storage.tell(msgspec.structs.replace(placing.pod.pod, metadata=meta))
    reason = 'pod does not exist any more: pod "incoming" not found'
    assert placing.outcome("b") == f"binding volumes: {reason}"


def test_a_migrated_disk_is_checked_by_the_labels_of_its_driver(storage):
    """The labels are the ones that were used when the node was chosen."""
    zone, driver_zone = "topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"
    storage.node("a", labels={driver_zone: "z1"})
    storage.tell(make_csi_node("a", migrated=["kubernetes.io/aws-ebs"]))
    placing = Placing(storage, "c").reserve()
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    made = make_volume("v", claim="default/c", driver="", spec=disk, reach={zone: ["z1"]})
    storage.tell(made, make_claim("c", node="a", volume="v", bound=True))
    assert placing.outcome() == ""


def test_an_assumption_does_not_change_the_object(storage):
    """The assumption is stored separately from the object of the API."""
    storage.tell(make_volume("v"))
    Placing(storage, "c").reserve()
    related, assumed = storage.cluster.related, storage.cluster.assumed_volumes
    volume = related.get(PersistentVolume, "v")
    assert volume.spec.claim_ref is None
    assert assumed.claim_of(volume).name == "c"
    assert assumed.node_of(related.get(PersistentVolumeClaim, "default/c")) is None
