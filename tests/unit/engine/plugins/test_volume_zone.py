"""VolumeZone: zone and region labels of volumes, compared with those of nodes."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_storage_class,
    make_volume,
)

SKIPPED = "skipped"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
NO_ZONE = "node(s) had no available volume zone"


@pytest.fixture
def plugin(scene):
    return scene.plugin("VolumeZone")


def verdict(scene, plugin, volume_labels, node_labels):
    scene.node("n", labels=node_labels)
    scene.tell(
        make_claim("c", volume="v", bound=True),
        make_volume("v", claim="default/c", labels=volume_labels),
    )
    found = scene.verdicts(plugin, scene.incoming(**make_claim_volumes("c")))
    return found if found == SKIPPED else found["n"]


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        pytest.param({}, {ZONE: "a"}, SKIPPED, id="a volume without such labels"),
        pytest.param({ZONE: "a"}, {ZONE: "a"}, "", id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, NO_ZONE, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, "", id="one of several zones"),
        pytest.param({ZONE: "a__ b"}, {ZONE: "b"}, "", id="spaces around a zone"),
        pytest.param({ZONE: "a__"}, {ZONE: "b"}, SKIPPED, id="a label with an empty zone"),
        pytest.param({ZONE: "a"}, {}, "", id="a node without any such label"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, NO_ZONE, id="a node with a region only"),
        pytest.param({REGION: "r"}, {ZONE: "a", REGION: "r"}, "", id="the same region"),
        pytest.param({ZONE: "a", REGION: "s"}, {ZONE: "a", REGION: "r"}, NO_ZONE, id="both count"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, "", id="a former label on the volume"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "b"}, NO_ZONE, id="a former label that differs"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, NO_ZONE, id="a former label on the node"),
        pytest.param(
            {OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}, NO_ZONE, id="the former label goes first"
        ),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, "", id="a former region"),
    ],
)
def test_a_node_fits_if_it_has_the_zone_labels_of_the_volume(volume, node, expected, scene, plugin):
    """Both forms of the plugin agree."""
    assert verdict(scene, plugin, volume, node) == expected


def test_changes_take_effect_in_the_next_cycle(scene, plugin):
    """A node gets another zone label, and a volume another label."""
    assert verdict(scene, plugin, {ZONE: "a"}, {ZONE: "b"}) == NO_ZONE
    assert verdict(scene, plugin, {ZONE: "a"}, {ZONE: "a"}) == ""
    assert verdict(scene, plugin, {ZONE: "b"}, {ZONE: "a"}) == NO_ZONE


def test_ephemeral_volumes_are_left_to_node_affinity(scene, plugin):
    """Only claims that are named in the pod are checked."""
    scene.node("n", "b")
    scene.tell(
        make_claim("incoming-e", volume="v", bound=True, made_for="u-incoming"),
        make_volume("v", claim="default/incoming-e", labels={ZONE: "a"}),
    )
    volumes = [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}]
    assert scene.verdicts(plugin, scene.incoming(volumes=volumes)) == SKIPPED


@pytest.mark.parametrize(
    ("objects", "name", "reason"),
    [
        pytest.param([], "c", 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param([], "", "PersistentVolumeClaim had no name", id="no name"),
        pytest.param(
            [make_claim("c", volume="v", bound=True)],
            "c",
            'persistentvolume "v" not found',
            id="no volume",
        ),
        pytest.param(
            [make_claim("c", of_class=None)],
            "c",
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            [make_claim("c")],
            "c",
            'storageclass.storage.k8s.io "fast" not found',
            id="a class that is not there",
        ),
        pytest.param(
            [make_claim("c"), make_storage_class(waits=False)],
            "c",
            "PersistentVolume had no name",
            id="a class that does not wait",
        ),
    ],
)
def test_claims_that_make_the_pod_unschedulable(objects, name, reason, scene, plugin):
    """Each message is upstream's."""
    scene.tell(*objects)
    answer = plugin.pre_filter(CycleState(), scene.incoming(**make_claim_volumes(name)))
    assert isinstance(answer, Status)
    assert answer.message == reason


def test_a_claim_that_waits_for_first_consumer_rejects_no_node(scene, plugin):
    """Its volume will be provisioned for the chosen node."""
    scene.tell(make_claim("c"), make_storage_class())
    assert scene.verdicts(plugin, scene.incoming(**make_claim_volumes("c"))) == SKIPPED


@pytest.mark.parametrize(
    ("kind", "old", "new", "woken"),
    [
        pytest.param(
            EventKind.STORAGE_CLASS_ADD, None, make_storage_class(), True, id="a class that waits"
        ),
        pytest.param(
            EventKind.STORAGE_CLASS_ADD,
            None,
            make_storage_class(waits=False),
            False,
            id="a class that does not wait",
        ),
        pytest.param(
            EventKind.VOLUME_CLAIM_UPDATE, make_claim("c"), make_claim("c"), True, id="its claim"
        ),
        pytest.param(
            EventKind.VOLUME_CLAIM_ADD, None, make_claim("d"), False, id="somebody's claim"
        ),
        pytest.param(EventKind.VOLUME_ADD, None, make_volume("v"), True, id="a new volume"),
        pytest.param(
            EventKind.VOLUME_UPDATE,
            make_volume("v"),
            make_volume("v", labels={ZONE: "a"}),
            True,
            id="a volume that moved",
        ),
        pytest.param(
            EventKind.VOLUME_UPDATE,
            make_volume("v", labels={ZONE: "a"}),
            make_volume("v", labels={ZONE: "a", "x": "y"}),
            False,
            id="a volume that changed otherwise",
        ),
    ],
)
def test_which_events_wake_a_pod(kind, old, new, woken, scene, plugin):
    """upstream: volume_zone.go: isSchedulableAfter…"""
    event = ClusterEvent(kind, old, new)
    assert plugin.is_woken_by(scene.incoming(**make_claim_volumes("c")), event) is woken
