"""NodeVolumeLimits: which volumes count on a node, and when the limit is exceeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.objects import PersistentVolumeClaim
from fairlead.engine.core.status import Code
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.node_volume_limits.attached import AttachedVolumes
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance
from fairlead.testing.storage_builders import (
    DRIVER,
    make_attachment,
    make_claim,
    make_claim_volumes,
    make_csi_node,
    make_storage_class,
    make_volume,
)

SKIPPED = "skipped"
TOO_MANY = "node(s) exceed max volume count"
EBS = "ebs.csi.aws.com"


@pytest.fixture
def plugin(scene):
    scene.node("n")
    return scene.plugin("NodeVolumeLimits")


def limit(scene, count, driver=DRIVER, name="n"):
    scene.tell(make_csi_node(name, **{driver.replace(".", "_"): count}))


def bound(scene, name, **volume):
    """Create a claim with its own volume."""
    scene.tell(make_claim(name, volume=f"v-{name}", bound=True))
    scene.tell(make_volume(f"v-{name}", claim=f"default/{name}", **volume))


def use(scene, pod, *claims, node="n"):
    """Add a pod with bound claims to the node."""
    for claim in claims:
        bound(scene, claim)
    return scene.pod(pod, node, **make_claim_volumes(*claims))


def verdict(scene, plugin, *claims):
    found = scene.verdicts(plugin, scene.incoming(**make_claim_volumes(*claims)))
    return found if found == SKIPPED else found["n"]


def test_without_a_limit_any_number_fits(scene, plugin):
    """No CSINode, a driver without a count, and a limit of another driver are no limits."""
    use(scene, "x", "c1", "c2")
    bound(scene, "new")
    assert verdict(scene, plugin, "new") == ""
    scene.tell(make_csi_node("n", csi_example_com=None, csi_other_com=0))
    assert verdict(scene, plugin, "new") == ""


@pytest.mark.parametrize(("count", "expected"), [(3, ""), (2, TOO_MANY), (0, TOO_MANY)])
def test_the_limit_is_the_highest_number_that_fits(count, expected, scene, plugin):
    """Two volumes are in use, and one is requested."""
    limit(scene, count)
    use(scene, "x", "c1", "c2")
    bound(scene, "new")
    assert verdict(scene, plugin, "new") == expected


def test_the_volumes_of_a_pod_are_needed_together(scene, plugin):
    """Each volume alone would fit."""
    limit(scene, 2)
    use(scene, "x", "c1")
    bound(scene, "new1")
    bound(scene, "new2")
    assert verdict(scene, plugin, "new1") == ""
    assert verdict(scene, plugin, "new1", "new2") == TOO_MANY


def test_a_volume_already_used_on_the_node_does_not_count_again(scene, plugin):
    """The number of pods and claims that use the volume does not matter."""
    limit(scene, 1)
    use(scene, "x", "c1")
    scene.pod("y", "n", **make_claim_volumes("c1"))
    bound(scene, "same", handle="v-c1")
    assert verdict(scene, plugin, "c1") == ""
    assert verdict(scene, plugin, "same") == ""


def test_a_claim_without_a_volume_counts_under_its_class(scene, plugin):
    """Each such claim counts separately; a claim of a missing class does not count."""
    limit(scene, 1)
    scene.tell(make_storage_class(), make_claim("c1"), make_claim("c2"))
    scene.tell(make_claim("stray", of_class="gone"))
    scene.pod("x", "n", **make_claim_volumes("c1"))
    assert verdict(scene, plugin, "c1") == ""
    assert verdict(scene, plugin, "c2") == TOO_MANY
    assert verdict(scene, plugin, "stray") == ""


def test_a_claim_whose_volume_is_deleted_counts_under_its_class(scene, plugin):
    """Like a claim that was never bound."""
    limit(scene, 0)
    scene.tell(make_storage_class(), make_claim("c", volume="gone", bound=True))
    assert verdict(scene, plugin, "c") == TOO_MANY


def test_an_attachment_without_pod_counts(scene, plugin):
    """The attachment counts until it is deleted, even if the pod requests the same volume."""
    limit(scene, 1)
    bound(scene, "c")
    scene.tell(make_volume("left"), make_attachment("a", "n", "left"))
    assert verdict(scene, plugin, "c") == TOO_MANY
    scene.untell(make_attachment("a", "n", "left"))
    assert verdict(scene, plugin, "c") == ""
    scene.tell(make_attachment("a", "n", "v-c"))
    assert verdict(scene, plugin, "c") == TOO_MANY


def test_an_attachment_of_a_used_volume_is_not_counted_twice(scene, plugin):
    """An attachment of a missing volume, or of one without a CSI driver, does not count."""
    limit(scene, 2)
    use(scene, "x", "c1")
    scene.tell(make_attachment("a", "n", "v-c1"), make_attachment("b", "n", "gone"))
    scene.tell(make_volume("path", driver=""), make_attachment("c", "n", "path"))
    bound(scene, "new")
    assert verdict(scene, plugin, "new") == ""


def test_in_tree_disks_count_under_their_driver(scene, plugin):
    """Inline disks, volumes and classes count. Nodes with a CSINode have migrated all of them."""
    limit(scene, 2, EBS)
    source = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    scene.pod("x", "n", volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    bound(scene, "same", driver="", spec=source)
    scene.tell(make_storage_class("gp2", provisioner="kubernetes.io/aws-ebs"))
    scene.tell(make_claim("new1", of_class="gp2"), make_claim("new2", of_class="gp2"))
    assert verdict(scene, plugin, "same", "new1") == ""
    assert verdict(scene, plugin, "new1", "new2") == TOO_MANY


def test_pods_without_attachable_volumes_are_skipped(scene, plugin):
    """CSI ephemeral inline volumes are not attached."""
    assert verdict(scene, plugin) == SKIPPED
    inline = [{"name": "s", "csi": {"driver": DRIVER}}]
    assert scene.verdicts(plugin, scene.incoming(volumes=inline)) == SKIPPED


def test_only_missing_claims_of_the_incoming_pod_reject_it(scene, plugin):
    """A pod that is already on the node runs without its claim."""
    limit(scene, 1)
    scene.pod("x", "n", **make_claim_volumes("gone"))
    bound(scene, "c")
    assert verdict(scene, plugin, "c") == ""
    reason = 'looking up PVC default/lost: persistentvolumeclaim "lost" not found'
    assert verdict(scene, plugin, "lost") == reason


def test_the_claim_of_another_pod_fails_the_cycle(scene, plugin):
    """The claim of an ephemeral volume must belong to its pod, also to a running one."""
    limit(scene, 5)
    volumes = [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}]
    scene.tell(make_claim("x-e", made_for="u-somebody"))
    scene.pod("x", "n", volumes=volumes)
    bound(scene, "c")
    incoming = scene.incoming(**make_claim_volumes("c"))
    state = scene.started(plugin, incoming)
    status = plugin.filter(state, incoming, scene.table.find("n"))
    assert status.code is Code.ERROR
    assert status.message == (
        "PVC default/x-e was not created for pod default/x (pod is not owner)"
    )
    assert scene.verdicts(plugin, incoming)["n"] == status.message


def test_a_disk_with_an_invalid_name_fails_the_cycle(scene, plugin):
    """Upstream cannot translate it either."""
    limit(scene, 5, EBS)
    disk = {"name": "d", "awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}
    found = scene.verdicts(plugin, scene.incoming(volumes=[disk]))["n"]
    assert found.startswith("converting volume(d) from inline to csi: failed to translate")


def test_an_unknown_volume_on_a_node_without_limits_is_ignored(scene, plugin):
    """With a limit, the volumes of the node must be counted, and the cycle fails."""
    disk = {"name": "d", "awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}
    scene.pod("x", "n", volumes=[disk])
    bound(scene, "c")
    for csi_node in ((), (make_csi_node("n", csi_example_com=None),)):
        scene.tell(*csi_node)
        assert verdict(scene, plugin, "c") == ""
    limit(scene, 5)
    assert verdict(scene, plugin, "c").startswith("converting volume(d) from inline to csi")


def test_volumes_of_other_kinds_do_not_count(scene, plugin):
    """The emptyDir does not count, but the disk does."""
    limit(scene, 1, EBS)
    disk = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}
    pod = scene.incoming(volumes=[{"name": "s", "emptyDir": {}}, disk])
    assert scene.verdicts(plugin, pod)["n"] == ""
    limit(scene, 0, EBS)
    assert scene.verdicts(plugin, pod)["n"] == TOO_MANY


def test_a_claim_without_a_name_fails_the_cycle(scene, plugin):
    """upstream: csi.go: getVolumeLimits, filterAttachableVolumes."""
    limit(scene, 1)
    assert verdict(scene, plugin, "") == "PersistentVolumeClaim had no name"


def test_only_the_given_nodes_are_filtered(scene, plugin):
    """The results are in the order of the rows."""
    scene.node("m")
    limit(scene, 0)
    bound(scene, "c")
    incoming = scene.incoming(**make_claim_volumes("c"))
    state = scene.started(plugin, incoming)
    rows = np.array([scene.table.find(name).row for name in ("m", "n")])
    codes = plugin.filter_columns(state, incoming, scene.table, rows).codes
    assert [bool(code) for code in codes] == [False, True]


# --- kept while things change ----------------------------------------------------------------

NODES = ("n1", "n2", "n3")
CLAIMS = tuple(f"c{i}" for i in range(6))
VOLUMES = tuple(f"v{i}" for i in range(5))


def any_change(chance):
    """Add, change or delete a random object."""
    name, node = chance.of(CLAIMS), chance.of(NODES)
    volume = chance.of(VOLUMES)
    one = chance.of(
        [
            lambda: make_node(node),
            lambda: make_csi_node(node, csi_example_com=chance.below(4)),
            lambda: make_pod(
                f"p{chance.below(5)}", node=node, spec=make_claim_volumes(*chance.some(CLAIMS, 3))
            ),
            lambda: make_claim(name, volume=chance.of(("", volume)), bound=True),
            lambda: make_volume(volume, handle=f"h{chance.below(3)}"),
            make_storage_class,
            lambda: make_attachment(f"a{chance.below(3)}", node, volume),
        ]
    )()
    return ObjectDeleted(one) if chance.one_in(4) else ObjectChanged(one)


def test_nodes_whose_pods_have_no_volumes_are_not_read(scene, plugin, monkeypatch):
    """In a large cluster, reading all pods of all nodes takes most of the first cycle."""
    read, of_one = [], AttachedVolumes._read
    monkeypatch.setattr(
        AttachedVolumes,
        "_read",
        lambda kept, node, sources: read.append(node.name) or of_one(kept, node, sources),
    )
    scene.node("plain")
    scene.pod("other", "plain")
    use(scene, "x", "c")
    limit(scene, 2)
    verdict(scene, plugin, "c")
    assert {*read} == {"n"}


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_updated_counts_equal_new_counts(seed, new_scene):
    """After any changes, the form with cached counts agrees with the form that counts anew."""
    chance, scene = Chance(seed), new_scene()
    plugin = scene.plugin("NodeVolumeLimits")
    for _ in range(12):
        for _ in range(1 + chance.below(4)):
            scene.cluster.apply(any_change(chance))
        find = scene.cluster.related.get
        known = [c for c in CLAIMS if find(PersistentVolumeClaim, f"default/{c}")]
        wanted = chance.some(known, min(3, len(known)))
        if wanted and scene.table.count:
            scene.verdicts(plugin, scene.incoming(**make_claim_volumes(*wanted)))


# --- waking ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "old", "new", "woken"),
    [
        pytest.param(EventKind.CSI_NODE_ADD, None, make_csi_node("n"), True, id="a new CSINode"),
        pytest.param(
            EventKind.CSI_NODE_UPDATE,
            make_csi_node("n", d=1),
            make_csi_node("n", d=2),
            True,
            id="a higher limit",
        ),
        pytest.param(
            EventKind.CSI_NODE_UPDATE,
            make_csi_node("n", d=2),
            make_csi_node("n", d=1, e=0),
            False,
            id="a lower limit",
        ),
        pytest.param(
            EventKind.CSI_NODE_UPDATE,
            make_csi_node("n"),
            make_csi_node("n", d=1),
            True,
            id="a limit where there was none",
        ),
        pytest.param(EventKind.VOLUME_CLAIM_ADD, None, make_claim("c"), True, id="its claim"),
        pytest.param(EventKind.VOLUME_CLAIM_ADD, None, make_claim("d"), False, id="another claim"),
        pytest.param(
            EventKind.VOLUME_ATTACHMENT_DELETE,
            make_attachment("a", "n", "v"),
            None,
            True,
            id="any detached volume",
        ),
    ],
)
def test_which_events_wake_a_pod_with_a_claim(kind, old, new, woken, scene, plugin):
    """upstream: csi.go: isSchedulableAfter…"""
    pod = scene.incoming(**make_claim_volumes("c"))
    assert plugin.is_woken_by(pod, ClusterEvent(kind, old, new)) is woken


@pytest.mark.parametrize(
    ("gone", "woken"),
    [
        pytest.param({}, False, id="without volumes"),
        pytest.param(make_claim_volumes("x"), True, id="with a claim"),
        pytest.param({"volumes": [{"name": "e", "ephemeral": {}}]}, True, id="with an own claim"),
        pytest.param({"volumes": [{"name": "d", "cinder": {}}]}, True, id="with a cloud's disk"),
        pytest.param({"volumes": [{"name": "d", "rbd": {}}]}, False, id="with another disk"),
    ],
)
def test_a_deleted_pod_with_attachable_volumes_wakes_pods(gone, woken, scene, plugin):
    """The driver of the volumes does not matter."""
    event = ClusterEvent(EventKind.ASSIGNED_POD_DELETE, scene.pod("left", "n", **gone), None)
    assert plugin.is_woken_by(scene.incoming(**make_claim_volumes("c")), event) is woken


@pytest.mark.parametrize(("driver", "woken"), [(EBS, True), (DRIVER, False)])
def test_a_detached_volume_wakes_pods_with_disks_of_its_driver(driver, woken, scene, plugin):
    """Pods without claims of this driver are not woken."""
    disk = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}
    old = make_attachment("a", "n", "v", attacher=driver)
    event = ClusterEvent(EventKind.VOLUME_ATTACHMENT_DELETE, old, None)
    assert plugin.is_woken_by(scene.incoming(volumes=[disk]), event) is woken


def test_a_hypothetically_removed_pod_frees_its_volumes(scene, plugin):
    """Dry runs evaluate the node without the pod."""
    limit(scene, 1)
    user = use(scene, "x", "c1")
    bound(scene, "new")
    incoming = scene.incoming(**make_claim_volumes("new"))
    state = CycleState()
    assert plugin.pre_filter(state, incoming) is None
    node = scene.table.find("n")
    scene.table.remove_pod(node, user, log=False)
    assert plugin.filter(state, incoming, node) is None
    scene.table.add_pod(node, user, log=False)
    assert plugin.filter(state, incoming, node).message == TOO_MANY
