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
    claiming,
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
)

HOST = "kubernetes.io/hostname"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
WAITING = "waiting"


class Placing:
    """A pod with the claims that `names` tells, to be placed on one of two nodes."""

    def __init__(self, scene, *names, pod="incoming"):
        self.scene, self.plugin = scene, scene.plugin("VolumeBinding")
        self.pod = scene.pod(pod, **claiming(*names))
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
        """{object: patch} of what PreBind asks for."""
        return {one.target.name: one.patch for one in self.pre_bind(node).commands}

    def outcome(self, node="a"):
        """WAITING, "" once prepared, or why it never will be."""
        status = self.plugin.is_prepared(self.state, self.pod, node)
        if status is None:
            return ""
        return WAITING if status.code is Code.WAIT else status.message


@pytest.fixture
def storage(scene):
    """Two nodes, a class that waits, and a claim."""
    scene.node("a")
    scene.node("b")
    scene.tell(make_storage_class(), make_claim("c"))
    return scene


def versioned(one, version):
    metadata = msgspec.structs.replace(one.metadata, resource_version=version)
    return msgspec.structs.replace(one, metadata=metadata)


def asked(scene, *names):
    """The verdict of VolumeBinding on each node for a pod with these claims."""
    return scene.verdicts(scene.plugin("VolumeBinding"), scene.incoming("next", **claiming(*names)))


# --- assumptions --------------------------------------------------------------------------------


def test_an_assumed_volume_is_in_use(storage):
    """For other claims of the next cycle; until it is taken back."""
    local = make_storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.tell(local, make_volume("v"), make_claim("d"))
    placing = Placing(storage, "c").reserve()
    assert asked(storage, "d") == {"a": NO_MATCH, "b": NO_MATCH}
    assert asked(storage, "c") == {"a": "", "b": ""}
    placing.unreserve()
    assert asked(storage, "d") == {"a": "", "b": ""}


def test_an_assumed_claim_fits_only_its_node(storage):
    """For other pods with the claim; until it is taken back."""
    placing = Placing(storage, "c").reserve("b")
    assert asked(storage, "c") == {"a": NO_MATCH, "b": ""}
    placing.unreserve("b")
    assert asked(storage, "c") == {"a": "", "b": ""}


def test_bindings_in_the_api_are_not_reverted(storage):
    """The placement may fail after it was written."""
    placing = Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", node="b"))
    placing.unreserve("b")
    assert asked(storage, "c") == {"a": NO_MATCH, "b": ""}


def test_an_older_update_does_not_revert_an_assumption(storage):
    """A newer version that does not show the decision yet."""
    Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", annotations={"note": "new"}))
    assert asked(storage, "c") == {"a": NO_MATCH, "b": ""}


def test_an_assumption_ends_with_its_object(storage):
    """A claim of that name which is made afterwards is free."""
    Placing(storage, "c").reserve("b")
    storage.untell(make_claim("c"))
    storage.tell(make_claim("c"))
    assert asked(storage, "c") == {"a": "", "b": ""}


def test_an_assumed_volume_that_is_created_again_is_free(storage):
    """The same for volumes."""
    local = make_storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.tell(local, make_volume("v"), make_claim("d"))
    Placing(storage, "c").reserve()
    storage.untell(make_volume("v"))
    storage.tell(make_volume("v"))
    assert asked(storage, "d") == {"a": "", "b": ""}


def test_a_claim_reference_with_uid_confirms_the_assumption(storage):
    """Its name alone stood there before."""
    storage.tell(make_volume("v", claim="default/c", claim_uid=""))
    placing = Placing(storage, "c").reserve()
    storage.tell(make_volume("v", claim="default/c", claim_uid="", labels={"note": "new"}))
    assert placing.outcome() == WAITING


def test_no_volumes_are_assumed_for_bound_claims(storage):
    """Its claims are bound."""
    storage.tell(make_claim("c", volume="v", bound=True), make_volume("v", claim="default/c"))
    assert Placing(storage, "c").reserve().pre_bind() is None


# --- what is written -------------------------------------------------------------------------


def test_the_claim_is_written_into_the_volume(storage):
    """With the uid, so that a claim of that name made later is not meant; and marked."""
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
    """So it is not freed when the marks are removed."""
    storage.tell(make_volume("v", claim="default/c", claim_uid=""))
    written = Placing(storage, "c").reserve().written()
    assert written["v"]["spec"]["claimRef"]["uid"] == "uid-c"
    assert written["v"]["metadata"] == {}


def test_a_volume_that_references_the_claim_is_not_written(storage):
    """Only the claim's side is awaited."""
    storage.tell(make_volume("v", claim="default/c"))
    placing = Placing(storage, "c").reserve()
    assert placing.written() == {}
    assert placing.outcome() == WAITING


def test_the_selected_node_is_written_to_a_claim_to_be_provisioned(storage):
    """Of the version that was read."""
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
    """For this node already."""
    storage.tell(make_claim("c", node="b"))
    placing = Placing(storage, "c").reserve("b")
    assert placing.written("b") == {}
    assert placing.outcome("b") == WAITING


def test_volumes_are_written_before_claims(storage):
    """As they were matched: the smallest claim first."""
    storage.tell(make_volume("v"), make_claim("big", size="5Gi"))
    placing = Placing(storage, "big", "c").reserve()
    assert list(placing.written()) == ["v", "big"]


@pytest.mark.parametrize(("args", "timeout_s"), [(None, 600), (30, 30)])
def test_the_bind_timeout_ends_the_wait(args, timeout_s, new_scene):
    """Ten minutes if nothing else is configured."""
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
    """First the volume shows it, then the claim."""
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
    """After it was written."""
    storage.tell(make_volume("v"))
    placing = Placing(storage, "c").reserve()
    if volume is None:
        storage.untell(make_volume("v"))
    else:
        storage.tell(volume)
    assert placing.outcome() == f"binding volumes: {reason}"


def test_a_binding_fails_if_a_client_resets_it(storage):
    """The volume showed the claim and does no more."""
    storage.tell(make_volume("v"))
    placing = Placing(storage, "c").reserve()
    storage.tell(make_volume("v", claim="default/c"), make_volume("v"))
    assert placing.outcome() == 'binding volumes: ClaimRef got reset for pv "v"'


def test_a_claim_is_provisioned_when_it_is_bound_to_an_accessible_volume(storage):
    """Step by step."""
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
    """The provisioner has ignored the selected node."""
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
    """After the node was written into it."""
    placing = Placing(storage, "c").reserve("b")
    storage.tell(make_claim("c", node="b"))
    if claim is None:
        storage.untell(make_claim("c"))
    else:
        storage.tell(claim)
    assert placing.outcome("b") == f"binding volumes: {reason}"


def test_the_wait_ends_if_the_node_is_deleted(storage):
    """There is nowhere to go."""
    placing = Placing(storage, "c").reserve("b")
    storage.untell(make_node("b"))
    reason = 'failed to get node "b": node "b" not found'
    assert placing.outcome("b") == f"binding volumes: {reason}"


@pytest.mark.parametrize("uid", [None, "another"])
def test_the_wait_ends_if_the_pod_is_deleted(uid, storage):
    """Or if another one has its name now."""
    placing = Placing(storage, "c").reserve("b")
    storage.gone(placing.pod)
    if uid is not None:
        meta = msgspec.structs.replace(placing.pod.pod.metadata, uid=uid)
        storage.tell(msgspec.structs.replace(placing.pod.pod, metadata=meta))
    reason = 'pod does not exist any more: pod "incoming" not found'
    assert placing.outcome("b") == f"binding volumes: {reason}"


def test_a_migrated_disk_is_checked_by_the_labels_of_its_driver(storage):
    """As it was when the node was chosen."""
    zone, driver_zone = "topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"
    storage.node("a", labels={driver_zone: "z1"})
    storage.tell(make_csi_node("a", migrated=["kubernetes.io/aws-ebs"]))
    placing = Placing(storage, "c").reserve()
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    made = make_volume("v", claim="default/c", driver="", spec=disk, reach={zone: ["z1"]})
    storage.tell(made, make_claim("c", node="a", volume="v", bound=True))
    assert placing.outcome() == ""


def test_an_assumption_does_not_change_the_object(storage):
    """It says what will be beside what the API shows."""
    storage.tell(make_volume("v"))
    Placing(storage, "c").reserve()
    related, assumed = storage.cluster.related, storage.cluster.assumed_volumes
    volume = related.get(PersistentVolume, "v")
    assert volume.spec.claim_ref is None
    assert assumed.claim_of(volume).name == "c"
    assert assumed.node_of(related.get(PersistentVolumeClaim, "default/c")) is None
