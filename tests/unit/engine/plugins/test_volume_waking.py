"""VolumeBinding: the events after which a rejected pod is retried."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.testing.builders import make_node
from fairlead.testing.storage_builders import (
    DRIVER,
    make_capacity,
    make_claim,
    make_claim_volumes,
    make_csi_driver,
    make_csi_node,
    make_storage_class,
    make_volume,
)

ZONE = "topology.kubernetes.io/zone"
EBS = "kubernetes.io/aws-ebs"
GCE = "kubernetes.io/gce-pd"
INLINE = {"volumes": [{"name": "i", "csi": {"driver": DRIVER}}]}
EPHEMERAL = {"volumes": [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}]}


@pytest.fixture
def woken(scene):
    def is_woken(spec, kind, old, new):
        plugin, pod = scene.plugin("VolumeBinding"), scene.incoming(**spec)
        assert kind in plugin.events
        return plugin.is_woken_by(pod, ClusterEvent(kind, old, new))

    return is_woken


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(make_claim("c"), True, id="its own"),
        pytest.param(make_claim("incoming-e"), False, id="one it would have made otherwise"),
        pytest.param(make_claim("other"), False, id="another one"),
        pytest.param(make_claim("c", namespace="elsewhere"), False, id="another's of that name"),
    ],
)
def test_only_claims_of_the_pod_wake_it(claim, expected, woken):
    """New or changed."""
    spec = make_claim_volumes("c")
    assert woken(spec, EventKind.VOLUME_CLAIM_ADD, None, claim) is expected
    assert woken(spec, EventKind.VOLUME_CLAIM_UPDATE, make_claim("c", node="n"), claim) is expected


def test_the_claim_of_an_ephemeral_volume_wakes_its_pod(woken):
    """The event is matched by the generated name of the claim."""
    assert woken(EPHEMERAL, EventKind.VOLUME_CLAIM_ADD, None, make_claim("incoming-e"))
    assert not woken(EPHEMERAL, EventKind.VOLUME_CLAIM_ADD, None, make_claim("e"))


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (EventKind.VOLUME_ADD, None, make_volume("v")),
        (EventKind.VOLUME_UPDATE, make_volume("v"), make_volume("v", size="2Gi")),
        (EventKind.STORAGE_CLASS_ADD, None, make_storage_class("any")),
        (EventKind.CSI_NODE_ADD, None, make_csi_node("n")),
        (EventKind.STORAGE_CAPACITY_ADD, None, make_capacity("k")),
        (EventKind.NODE_ADD, None, make_node("n")),
        (EventKind.NODE_LABEL, make_node("n"), make_node("n", labels={"a": "b"})),
    ],
)
def test_objects_whose_changes_always_wake_the_pod(kind, old, new, woken):
    """The plugin does not compare the contents."""
    assert woken(make_claim_volumes("c"), kind, old, new)


def test_a_storage_class_with_other_topologies_wakes_the_pod(woken):
    """Other changes of it do not."""
    old = make_storage_class(topologies=[{ZONE: ["z1"]}])
    assert woken({}, EventKind.STORAGE_CLASS_UPDATE, old, make_storage_class())
    assert not woken(
        {},
        EventKind.STORAGE_CLASS_UPDATE,
        old,
        make_storage_class(topologies=[{ZONE: ["z1"]}], is_default=True),
    )


def test_a_csi_node_with_changed_migrated_drivers_wakes_the_pod(woken):
    """A CSINode whose drivers change only their limits does not."""
    old = make_csi_node("n", migrated=[EBS])
    more = make_csi_node("n", migrated=[EBS, GCE])
    assert woken({}, EventKind.CSI_NODE_UPDATE, old, more)
    assert woken({}, EventKind.CSI_NODE_UPDATE, old, make_csi_node("n"))
    limited = make_csi_node("n", migrated=[EBS], csi_example_com=3)
    assert not woken({}, EventKind.CSI_NODE_UPDATE, old, limited)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"capacity": "1Gi"}, {"capacity": "2Gi"}, True, id="more"),
        pytest.param({"capacity": "2Gi"}, {"capacity": "1Gi"}, False, id="less"),
        pytest.param({"capacity": "1Gi"}, {"capacity": "1Gi"}, False, id="as much"),
        pytest.param({}, {"capacity": "1Gi"}, True, id="now it is said"),
        pytest.param({}, {"capacity": "0"}, True, id="now it is said to be none"),
        pytest.param({"capacity": "1Gi"}, {}, False, id="now it is not"),
        pytest.param(
            {"capacity": "9Gi", "maximum": "1Gi"},
            {"capacity": "1Gi", "maximum": "2Gi"},
            True,
            id="bigger single volumes, in less room",
        ),
        pytest.param(
            {"capacity": "1Gi", "maximum": "1Gi"},
            {"capacity": "9Gi", "maximum": "1Gi"},
            False,
            id="more room, in volumes no bigger",
        ),
    ],
)
def test_capacity_for_larger_volumes_wakes_the_pod(before, after, expected, woken):
    """The maximum size of a single volume matters."""
    old, new = make_capacity("k", **before), make_capacity("k", **after)
    assert woken({}, EventKind.STORAGE_CAPACITY_UPDATE, old, new) is expected


@pytest.mark.parametrize(
    ("spec", "before", "after", "expected"),
    [
        pytest.param(INLINE, True, False, True, id="it does not count any more"),
        pytest.param(INLINE, False, True, False, id="it begins to"),
        pytest.param(INLINE, True, True, False, id="it still does"),
        pytest.param(
            make_claim_volumes("c"), True, False, False, id="of no inline volume of the pod"
        ),
        pytest.param(
            {"volumes": [{"name": "i", "csi": {"driver": "other"}}]},
            True,
            False,
            False,
            id="another driver",
        ),
    ],
)
def test_a_driver_that_stops_publishing_capacity_wakes_pods(spec, before, after, expected, woken):
    """As in kube-scheduler, it wakes pods with its inline volumes, although claims are affected."""
    old, new = make_csi_driver(tells_capacity=before), make_csi_driver(tells_capacity=after)
    assert woken(spec, EventKind.CSI_DRIVER_UPDATE, old, new) is expected
