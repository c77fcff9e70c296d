"""Volumes of one node are in use by started pods, and for some time by lost pods."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import CSIDriver
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.kubelet.volume_attachment import DETACH_TIMEOUT, SingleNodeVolumes
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.storage_builders import DRIVER, make_claim, make_claim_volumes, make_volume

NOW = seconds(1_000)


def pod(name, node, phase="Running"):
    return make_pod(name, node=node, spec=make_claim_volumes("data"), status={"phase": phase})


NEW = pod("new", "b", "Pending")


def volumes(*objects, taints=(), **volume):
    """Return the volumes of a cluster whose claim `data` is bound to `volume`."""
    claim = make_claim("data", volume="pv", bound=True)
    bound = make_volume("pv", claim="default/data", **volume)
    nodes = [make_node("a", taints=taints), make_node("b")]
    cluster = Cluster()
    cluster.apply(ObjectsLoaded((*nodes, claim, bound, NEW, *objects)))
    return SingleNodeVolumes(cluster)


@pytest.mark.parametrize(
    ("other", "volume", "is_held"),
    [
        pytest.param(pod("old", "a"), {}, True, id="a pod on another node"),
        pytest.param(pod("old", "a"), {"modes": ("ReadWriteOncePod",)}, True, id="one pod only"),
        pytest.param(pod("old", "b"), {}, False, id="a pod on the same node"),
        pytest.param(pod("old", "a", "Pending"), {}, False, id="a pod that has not started"),
        pytest.param(pod("old", "a", "Succeeded"), {}, False, id="a pod that has ended"),
        pytest.param(pod("old", "a"), {"modes": ("ReadWriteMany",)}, False, id="many nodes"),
        pytest.param(pod("old", "a"), {"modes": ()}, False, id="unknown access modes"),
        pytest.param(
            pod("old", "a"),
            {"driver": "", "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}},
            True,
            id="a disk of an in-tree plugin",
        ),
        pytest.param(
            pod("old", "a"),
            {"driver": "", "spec": {"hostPath": {"path": "/data"}}},
            False,
            id="a volume that is not attached",
        ),
    ],
)
def test_a_started_pod_on_another_node_uses_a_volume_of_one_node(other, volume, is_held):
    holder = volumes(other, **volume).holder_of(NEW)
    assert (holder is not None and holder.key) == (other.key if is_held else False)


def test_volumes_of_a_driver_that_attaches_nothing_are_free():
    driver = {"metadata": {"name": DRIVER}, "spec": {"attachRequired": False}}
    found = volumes(pod("old", "a"), decode_as(CSIDriver, driver))
    assert found.holder_of(NEW) is None


@pytest.mark.parametrize(
    ("lost", "taints", "wait"),
    [
        (pod("old", "a"), (), DETACH_TIMEOUT),
        (pod("old", "gone"), (), DETACH_TIMEOUT),
        (pod("old", "a", "Succeeded"), (), None),
        (pod("old", "a"), (f"{OUT_OF_SERVICE}:NoExecute",), None),
    ],
)
def test_a_lost_pod_uses_its_volume_until_a_timeout(lost, taints, wait):
    found = volumes(taints=taints)
    assert found.free_at(NEW) == 0
    found.delay_detach(lost, NOW)
    assert found.free_at(NEW) == (0 if wait is None else NOW + wait)


def test_an_event_names_the_volume_and_the_pod_that_uses_it():
    event = volumes(pod("old", "a")).attach_error(NEW, NOW)
    assert (event.type, event.reason) == ("Warning", "FailedAttachVolume")
    assert event.note == 'Multi-Attach error for volume "pv" Volume is already used by pod(s) old'


def test_an_event_says_that_a_volume_is_still_attached_to_a_lost_node():
    found = volumes()
    found.delay_detach(pod("old", "a"), NOW)
    assert found.attach_error(NEW, NOW).note == (
        'Multi-Attach error for volume "pv" Volume is already exclusively attached to one node '
        "and can't be attached to another"
    )
