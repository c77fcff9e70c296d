"""DynamicResources: the claims for which a pod waits, and the events that wake the pod."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.engine.core.status import SKIP
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.device_builders import (
    make_claim_status,
    make_pod_resource_claims,
    make_resource_claim,
)


@pytest.fixture
def plugin(scene):
    return scene.plugin("DynamicResources")


def pod_with_claim(scene, name):
    """Return a pod whose status contains the generated claim "made"."""
    spec = make_pod_resource_claims(templates=["t"]) | {"containers": [{"name": "c"}]}
    names = {"other": "unrelated", "t0": "made"}
    made = {
        "resourceClaimStatuses": [
            {"name": name, "resourceClaimName": claim} for name, claim in names.items()
        ]
    }
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    pod = decode_as(Pod, {"metadata": metadata, "spec": spec, "status": made})
    return PodInfo(pod, scene.cluster.shapes.shape_of(pod))


def test_a_pod_waits_until_its_claims_exist(scene, plugin):
    """The message is upstream's."""
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    assert plugin.pre_enqueue(pod).message == 'could not find ResourceClaim "default/c"'
    scene.tell(make_resource_claim("c"))
    assert plugin.pre_enqueue(pod) is None
    assert plugin.pre_enqueue(scene.pod("q")) is None


def test_a_pod_waits_until_its_generated_claim_exists(scene, plugin):
    """The claim must have been created for this pod."""
    spec = make_pod_resource_claims(templates=["t"])
    waiting = plugin.pre_enqueue(scene.pod("p", **spec))
    assert waiting.message == 'pod "default/p": ResourceClaim not created yet'
    pod = pod_with_claim(scene, "p")
    scene.tell(make_resource_claim("made", made_for="another"))
    assert plugin.pre_enqueue(pod).message == (
        "ResourceClaim default/made was not created for pod default/p (pod is not owner)"
    )
    scene.tell(make_resource_claim("made", made_for=pod.uid))
    assert plugin.pre_enqueue(pod) is None


def test_a_pod_for_which_no_claim_is_needed(scene, plugin):
    """Its status names no claim for the template (resourceclaim.go: Name)."""
    spec = make_pod_resource_claims(templates=["t"]) | {"containers": [{"name": "c"}]}
    status = {"resourceClaimStatuses": [{"name": "t0"}]}
    metadata = {"name": "p", "namespace": "default", "uid": "u-p"}
    pod = decode_as(Pod, {"metadata": metadata, "spec": spec, "status": status})
    info = PodInfo(pod, scene.cluster.shapes.shape_of(pod))
    assert plugin.pre_enqueue(info) is None
    assert plugin.pre_filter(CycleState(), info) is SKIP


def test_a_claim_reference_without_name_or_template(scene, plugin):
    """The reference has a kind that does not exist in the current API."""
    pod = scene.pod("p", resourceClaims=[{"name": "x"}])
    assert plugin.pre_enqueue(pod).message == (
        'pod "default/p", spec.resourceClaim "x": none of the supported fields are set'
    )


OWN = make_resource_claim("c")
OTHER = make_resource_claim("x")
OWN_TAKEN = make_resource_claim("c", status=make_claim_status("a", "gpu-0"))
OTHER_TAKEN = make_resource_claim("x", status=make_claim_status("a", "gpu-0"))


@pytest.mark.parametrize(
    ("kind", "old", "new", "woken"),
    [
        (EventKind.RESOURCE_CLAIM_ADD, None, OWN, True),
        (EventKind.RESOURCE_CLAIM_ADD, None, OTHER, False),
        (EventKind.RESOURCE_CLAIM_UPDATE, OWN, OWN_TAKEN, True),
        (EventKind.RESOURCE_CLAIM_UPDATE, OWN, OWN, False),
        (EventKind.RESOURCE_CLAIM_UPDATE, OTHER, OTHER_TAKEN, False),
        (EventKind.RESOURCE_CLAIM_UPDATE, OTHER_TAKEN, OTHER, True),
        (EventKind.RESOURCE_SLICE_ADD, None, None, True),
        (EventKind.DEVICE_CLASS_UPDATE, None, None, True),
    ],
)
def test_which_events_wake_a_pod(scene, plugin, kind, old, new, woken):
    """The pod's own claims and deallocated devices wake it."""
    scene.tell(OWN)
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    assert kind in plugin.events
    assert plugin.is_woken_by(pod, ClusterEvent(kind, old, new)) is woken


def test_deallocated_devices_do_not_wake_a_pod_without_its_claims(scene, plugin):
    """Devices released by other pods do not wake it."""
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    event = ClusterEvent(EventKind.RESOURCE_CLAIM_UPDATE, OTHER_TAKEN, OTHER)
    assert not plugin.is_woken_by(pod, event)


def test_a_pod_is_woken_when_it_is_told_its_claim(scene, plugin):
    """The pod is woken when its status contains its existing claim; other pods are not."""
    spec = make_pod_resource_claims(templates=["t"])
    waiting, other = scene.pod("p", **spec), scene.pod("q", **spec)
    pod = pod_with_claim(scene, "p")
    event = ClusterEvent(EventKind.POD_CLAIM_MADE, waiting, pod)
    assert not plugin.is_woken_by(pod, event)
    scene.tell(make_resource_claim("made", made_for=pod.uid))
    assert plugin.is_woken_by(pod, event)
    assert not plugin.is_woken_by(other, event)
