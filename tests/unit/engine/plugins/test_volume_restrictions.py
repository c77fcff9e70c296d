"""VolumeRestrictions: volumes that pods cannot share, and preemption of their users."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.storage_builders import make_claim, make_claim_volumes, make_volume

SKIPPED = "skipped"
NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


def gce(name, *, read_only=False):
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name):
    return {"awsElasticBlockStore": {"volumeID": name}}


def iscsi(iqn, *, read_only=False):
    return {"iscsi": {"iqn": iqn, "readOnly": read_only}}


def rbd(*monitors, pool="rbd", image="i", read_only=False):
    source = {"monitors": list(monitors), "image": image, "readOnly": read_only}
    return {"rbd": source | ({"pool": pool} if pool else {})}


def volumes(*sources):
    return [{"name": f"v{i}", **source} for i, source in enumerate(sources)]


@pytest.fixture
def plugin(scene):
    scene.node("a")
    scene.node("b")
    return scene.plugin("VolumeRestrictions")


@pytest.mark.parametrize(
    ("theirs", "ours", "conflict"),
    [
        pytest.param(gce("d"), gce("d"), True, id="one disk, two writers"),
        pytest.param(gce("d"), gce("e"), False, id="two disks"),
        pytest.param(gce("d", read_only=True), gce("d", read_only=True), False, id="two readers"),
        pytest.param(gce("d"), gce("d", read_only=True), True, id="a reader beside a writer"),
        pytest.param(ebs("d"), ebs("d"), True, id="EBS volumes are never shared"),
        pytest.param(ebs("d"), ebs("e"), False, id="two EBS volumes"),
        pytest.param(ebs("d"), gce("d"), False, id="the same name elsewhere"),
        pytest.param(iscsi("q"), iscsi("q"), True, id="one IQN"),
        pytest.param(iscsi("q"), iscsi("r"), False, id="two IQNs"),
        pytest.param(
            iscsi("q", read_only=True), iscsi("q", read_only=True), False, id="one IQN, readers"
        ),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="an image with a common monitor"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="an image without a common monitor"),
        pytest.param(rbd("m", pool="p"), rbd("m"), False, id="the image in another pool"),
        pytest.param(rbd("m", pool=""), rbd("m"), True, id="the default pool by name"),
        pytest.param(rbd("m", image="j"), rbd("m"), False, id="another image"),
        pytest.param(
            rbd("m", read_only=True), rbd("m", read_only=True), False, id="an image with readers"
        ),
    ],
)
def test_disks_exclude_each_other_on_a_node(theirs, ours, conflict, scene, plugin):
    """Pods on other nodes do not conflict. Both forms of the plugin agree."""
    scene.pod("theirs", "a", volumes=volumes(theirs))
    verdicts = scene.verdicts(plugin, scene.incoming(volumes=volumes(ours)))
    assert verdicts == {"a": NO_DISK if conflict else "", "b": ""}


def test_a_disk_is_free_after_its_last_pod_is_deleted(scene, plugin):
    """The number of users of each disk is counted."""
    pods = [scene.pod(name, "a", volumes=volumes(ebs("d"))) for name in ("x", "y")]
    incoming = scene.incoming(volumes=volumes(ebs("d")))
    scene.gone(pods[0])
    assert scene.verdicts(plugin, incoming)["a"] == NO_DISK
    scene.gone(pods[1])
    assert scene.verdicts(plugin, incoming)["a"] == ""


def test_pods_without_such_volumes_are_skipped(scene, plugin):
    """An unused ReadWriteOncePod claim is skipped, too, and so is a shared claim that is in use."""
    scene.tell(make_claim("alone", modes=["ReadWriteOncePod"]), make_claim("shared"))
    scene.pod("user", "a", **make_claim_volumes("shared"))
    assert scene.verdicts(plugin, scene.incoming()) == SKIPPED
    assert (
        scene.verdicts(plugin, scene.incoming(**make_claim_volumes("alone", "shared"))) == SKIPPED
    )


def test_a_claim_for_one_pod_is_refused_everywhere_while_in_use(scene, plugin):
    """The node of the user does not matter; a claim in another namespace is another claim."""
    scene.tell(make_claim("c", modes=["ReadWriteOncePod"]))
    user = scene.pod("user", "a", **make_claim_volumes("c"))
    scene.pod("other", "b", namespace="elsewhere", **make_claim_volumes("c"))
    incoming = scene.incoming(**make_claim_volumes("c"))
    assert scene.verdicts(plugin, incoming) == {"a": IN_USE, "b": IN_USE}
    scene.gone(user)
    assert scene.verdicts(plugin, incoming) == SKIPPED


def test_conflicts_of_disks_are_reported_before_those_of_claims(scene, plugin):
    """If both conflict."""
    scene.tell(make_claim("c", modes=["ReadWriteOncePod"]))
    scene.pod("user", "a", volumes=[*volumes(ebs("d")), *make_claim_volumes("c")["volumes"]])
    incoming = scene.incoming(volumes=[*volumes(ebs("d")), *make_claim_volumes("c")["volumes"]])
    assert scene.verdicts(plugin, incoming) == {"a": NO_DISK, "b": IN_USE}


def test_a_missing_claim_makes_the_pod_unschedulable(scene, plugin):
    """The message is the API server's, and preemption does not help."""
    answer = plugin.pre_filter(CycleState(), scene.incoming(**make_claim_volumes("c")))
    assert isinstance(answer, Status)
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert answer.message == 'persistentvolumeclaim "c" not found'


def test_preemption_of_its_pod_frees_a_read_write_once_pod_claim():
    """Preemption helps on the node of the pod that uses the claim, not on other nodes."""
    scene = PluginScene(nodes=[make_node("a"), make_node("b")])
    scene.add(
        make_claim("c", modes=["ReadWriteOncePod"], volume="v", bound=True),
        make_volume("v", claim="default/c", modes=["ReadWriteOncePod"]),
        make_pod("user", node="a", priority=1, spec=make_claim_volumes("c")),
        make_pod("bystander", node="b", priority=1),
    )
    room = scene.make_room(make_pod("urgent", priority=9, spec=make_claim_volumes("c")))
    assert room is not None
    assert room.nominated_node == "a"
    assert [victim.pod.metadata.name for victim in room.victims] == ["user"]


def test_a_pod_of_equal_priority_keeps_its_claim():
    """Preemption does not help then."""
    scene = PluginScene(nodes=[make_node("a")])
    scene.add(
        make_claim("c", modes=["ReadWriteOncePod"], volume="v", bound=True),
        make_volume("v", claim="default/c", modes=["ReadWriteOncePod"]),
        make_pod("user", node="a", priority=9, spec=make_claim_volumes("c")),
    )
    assert scene.make_room(make_pod("equal", priority=9, spec=make_claim_volumes("c"))) is None


# --- waking ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gone", "woken"),
    [
        pytest.param({}, False, id="a pod without volumes"),
        pytest.param({"volumes": volumes(gce("d"))}, True, id="a user of the disk"),
        pytest.param({"volumes": volumes(gce("e"))}, False, id="a user of another disk"),
        pytest.param(make_claim_volumes("c"), True, id="a user of the claim"),
        pytest.param(make_claim_volumes("d"), False, id="a user of another claim"),
        pytest.param(
            {"namespace": "elsewhere", **make_claim_volumes("c")},
            False,
            id="a user of another namespace",
        ),
    ],
)
def test_a_deleted_pod_wakes_pods_with_conflicting_volumes(gone, woken, scene, plugin):
    """The access mode of a shared claim does not matter."""
    left = scene.pod("left", "a", **gone)
    ours = [*volumes(gce("d")), {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    event = ClusterEvent(EventKind.ASSIGNED_POD_DELETE, left, None)
    assert plugin.is_woken_by(scene.incoming(volumes=ours), event) is woken


def test_new_claims_of_the_pod_and_new_nodes_wake(scene, plugin):
    """Claims of others do not."""
    pod = scene.incoming(**make_claim_volumes("c"))

    def wakes(kind, new):
        return plugin.is_woken_by(pod, ClusterEvent(kind, None, new))

    assert wakes(EventKind.NODE_ADD, decode_as(Node, {"metadata": {"name": "n"}}))
    assert wakes(EventKind.VOLUME_CLAIM_ADD, make_claim("c"))
    assert not wakes(EventKind.VOLUME_CLAIM_ADD, make_claim("d"))
    assert not wakes(EventKind.VOLUME_CLAIM_ADD, make_claim("c", namespace="elsewhere"))
