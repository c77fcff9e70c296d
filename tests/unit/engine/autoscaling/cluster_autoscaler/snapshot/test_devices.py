"""Devices of simulated nodes, and claims of simulated pods."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.node_devices import node_devices
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import (
    DRIVER,
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)


@pytest.fixture
def snapshot():
    """Two nodes; only `a` has devices, two of them."""
    found = ClusterSnapshot(Listers(AutoscalingOptions()))
    found.put(make_device_class())
    found.put(make_slice("a", ["gpu-0", "gpu-1"]))
    for name in ("a", "b"):
        found.put(make_node(name))
    return found


def pending(snapshot, name, *claims):
    """A pending pod whose `claims` exist."""
    return snapshot.pod_info(make_pod(name, spec=make_pod_resource_claims(*claims)))


def places(snapshot, *pods):
    """The node of each of `pods`, which are placed one after another."""
    found = []
    for pod in pods:
        found.append(snapshot.find_place(pod))
        if found[-1] is not None:
            snapshot.add_pod(pod, found[-1])
    return found


def put_claims(snapshot, *names, **more):
    for name in names:
        snapshot.put(make_resource_claim(name, **more))


def test_a_simulated_pod_uses_devices_until_the_fork_ends(snapshot):
    put_claims(snapshot, "c0", "c1", "c2")
    pods = [pending(snapshot, f"p{at}", f"c{at}") for at in range(3)]
    with snapshot.loop(["a", "b"]):
        for _ in range(2):
            with snapshot.fork():
                assert places(snapshot, *pods) == ["a", "a", None]


def test_pods_of_a_shared_claim_follow_each_other(snapshot):
    put_claims(snapshot, "shared")
    pods = [pending(snapshot, f"p{at}", "shared") for at in range(3)]
    with snapshot.loop(["b", "a"]):
        assert places(snapshot, *pods) == ["a", "a", "a"]
        [claim] = snapshot.claims_of(pods[0].pod)
        assert [one.name for one in claim.status.reserved_for] == ["p0", "p1", "p2"]


def test_a_removed_pod_releases_its_devices(snapshot):
    status = make_claim_status("a", "gpu-0", "gpu-1", reserved_for=["uid-p"])
    put_claims(snapshot, "both", status=status)
    put_claims(snapshot, "one")
    bound = make_pod("p", uid="uid-p", node="a", spec=make_pod_resource_claims("both"))
    snapshot.put(bound)
    waiting = pending(snapshot, "q", "one")
    with snapshot.loop(["a", "b"]):
        assert places(snapshot, waiting) == [None]
        with snapshot.fork():
            (info,) = snapshot.node("a").pods.values()
            snapshot.remove_pod(info, "a")
            assert places(snapshot, waiting) == ["a"]
        assert places(snapshot, waiting) == [None]


@pytest.mark.parametrize(("made_for", "place"), [("", None), ("uid-p", "a")])
def test_a_claim_that_other_pods_use_keeps_its_devices(snapshot, made_for, place):
    """They are released if the removed pod owns the claim (snapshot.go: UnreservePodClaims)."""
    status = make_claim_status("a", "gpu-0", "gpu-1", reserved_for=["uid-p", "uid-other"])
    put_claims(snapshot, "both", status=status, made_for=made_for)
    put_claims(snapshot, "one")
    snapshot.put(make_pod("p", uid="uid-p", node="a", spec=make_pod_resource_claims("both")))
    with snapshot.loop(["a", "b"]):
        (info,) = snapshot.node("a").pods.values()
        snapshot.remove_pod(info, "a")
        assert places(snapshot, pending(snapshot, "q", "one")) == [place]


def test_new_nodes_have_the_devices_of_their_template_except_those_of_its_pods(snapshot):
    used = make_resource_claim(
        "agent", status=make_claim_status("a", "gpu-0", reserved_for=["uid-agent"])
    )
    foreign = make_resource_claim("far", status=make_claim_status("z", "gpu-0"))
    waiting = make_resource_claim("new")
    devices = node_devices(snapshot.slices_of("a"), [used, foreign, waiting])
    assert devices.claims == (used,)
    put_claims(snapshot, "c0", "c1", "c2")
    pods = [pending(snapshot, f"p{at}", f"c{at}") for at in range(3)]
    with snapshot.loop(["b"]):
        for _ in range(2):
            with snapshot.fork():
                for name in ("n0", "n1"):
                    snapshot.add_node(make_node(name), (), devices.copies(name))
                assert places(snapshot, *pods) == ["n0", "n1", None]
                [claim] = snapshot.claims_of(pods[1].pod)
                [result] = claim.status.allocation.devices.results
                assert (result.driver, result.pool, result.device) == (DRIVER, "a-n1", "gpu-1")
        assert snapshot.slices_of("n0") == []


def test_slices_of_several_nodes_belong_to_no_node(snapshot):
    shared = make_slice("", pool="a", name="shared", spec={"allNodes": True})
    snapshot.put(shared)
    assert [one.metadata.name for one in snapshot.slices_of("a")] == [f"{DRIVER}-a"]
    assert snapshot.slices_of("b") == []


def test_a_change_of_a_slice_changes_its_node(snapshot):
    before = snapshot.revision("a")
    snapshot.put(make_slice("a", ["gpu-0"]))
    assert snapshot.revision("a") != before
