"""DynamicResources: assumed allocations, the writes of a binding, and the effects of failures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.core.command import PatchObject, PatchStatus
from fairlead.engine.core.status import Code
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture
def plugin(scene):
    """Two nodes with a device each."""
    scene.node("a")
    scene.node("b")
    scene.tell(make_device_class(), make_slice("a"), make_slice("b"))
    return scene.plugin("DynamicResources")


def placed(scene, plugin, pod, node):
    """Return the state of a cycle that chose `node`."""
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find(node)) is None
    assert plugin.reserve(state, pod, node) is None
    return state


def test_an_assumed_device_is_in_use_for_other_claims(scene, plugin):
    """The device is free again when the assumption is reverted."""
    scene.tell(make_resource_claim("c"), make_resource_claim("d"))
    first, second = (
        scene.pod(name, **make_pod_resource_claims(claim))
        for name, claim in (("p", "c"), ("q", "d"))
    )
    state = placed(scene, plugin, first, "a")
    other = scene.started(plugin, second)
    node = scene.table.find("a")
    assert plugin.filter(other, second, node).message == "cannot allocate all claims"
    plugin.unreserve(state, first, "a")
    plugin.unreserve(state, first, "a")  # the second time does nothing
    assert plugin.filter(scene.started(plugin, second), second, node) is None


def test_a_claim_is_allocated_by_one_pod_at_a_time(scene, plugin):
    """The other pod waits for the outcome of the first allocation."""
    scene.tell(make_resource_claim("c"))
    first, second = (scene.pod(name, **make_pod_resource_claims("c")) for name in ("p", "q"))
    placed(scene, plugin, first, "a")
    answer = plugin.pre_filter(CycleState(), second)
    assert answer.message == "resource claim default/c is in the process of being allocated"


def test_pods_of_a_pod_group_share_an_allocation_that_the_api_does_not_show(scene, plugin):
    """The pods are tried in one cycle; the allocation and the reservations contain all of them."""
    scene.tell(make_resource_claim("c"))
    more = {"schedulingGroup": {"podGroupName": "gang"}, **make_pod_resource_claims("c")}
    first, second = (scene.pod(name, **more) for name in ("p", "q"))
    before = placed(scene, plugin, first, "a")
    state = scene.started(plugin, second)
    refused = plugin.filter(state, second, scene.table.find("b"))
    assert refused.message == "resourceclaim not available on the node"
    assert plugin.post_filter(state, second, None).commands == ()
    assert plugin.filter(state, second, scene.table.find("a")) is None
    assert plugin.reserve(state, second, "a") is None
    *_, write = plugin.pre_bind(state, second, "a").commands  # the second pod may write first
    assert "allocation" in write.fields
    assert [one["name"] for one in write.fields["reservedFor"]] == ["q"]
    *_, write = plugin.pre_bind(before, first, "a").commands
    assert [one["name"] for one in write.fields["reservedFor"]] == ["q", "p"]
    plugin.unreserve(state, second, "a")
    plugin.unreserve(before, first, "a")
    assert plugin.filter(scene.started(plugin, second), second, scene.table.find("b")) is None


@pytest.mark.parametrize(
    ("node", "expected"),
    [("a", "reservedFor"), ("b", "claim default/c got allocated elsewhere in the meantime")],
)
def test_another_pod_of_the_pod_group_wrote_the_allocation(scene, plugin, node, expected):
    scene.tell(make_resource_claim("c"))
    pod = scene.pod("p", schedulingGroup={"podGroupName": "gang"}, **make_pod_resource_claims("c"))
    state = placed(scene, plugin, pod, "a")
    scene.tell(
        make_resource_claim("c", status=make_claim_status(node, "gpu-0", reserved_for=["q"]))
    )
    answer = plugin.pre_bind(state, pod, "a")
    found = answer.message if node == "b" else next(iter(answer.commands[0].fields))
    assert found == expected


@pytest.mark.parametrize("group", [{}, {"schedulingGroup": {"podGroupName": "other"}}])
def test_other_pods_do_not_share_an_allocation_that_the_api_does_not_show(scene, plugin, group):
    scene.tell(make_resource_claim("c"))
    first = scene.pod(
        "p", schedulingGroup={"podGroupName": "gang"}, **make_pod_resource_claims("c")
    )
    placed(scene, plugin, first, "a")
    answer = plugin.pre_filter(
        CycleState(), scene.pod("q", **group, **make_pod_resource_claims("c"))
    )
    assert answer.message == "resource claim default/c is in the process of being allocated"


def test_the_writes_of_a_new_allocation(scene, plugin):
    """First the finalizer; then devices, node selector and consumer in one write."""
    config = [{"requests": ["r"], "opaque": {"driver": "d", "parameters": {"of": "claim"}}}]
    shared = {"opaque": {"driver": "d", "parameters": {"of": "class"}}}
    scene.tell(make_device_class("gpu", config=[shared]))
    scene.tell(
        make_resource_claim("c", make_device_request("r"), make_device_request("s"), config=config)
    )
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = placed(scene, plugin, pod, "a")
    protection, status = plugin.pre_bind(state, pod, "a").commands
    assert isinstance(protection, PatchObject)
    assert protection.patch == {"metadata": {"finalizers": [FINALIZER]}}
    allocation = status.fields["allocation"]
    assert [one["device"] for one in allocation["devices"]["results"]] == ["gpu-0", "gpu-1"]
    assert allocation["devices"]["config"] == [
        {"source": "FromClass", **shared},
        {"source": "FromClaim", **config[0]},
    ]
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    assert status.fields["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pod.uid}]
    assert plugin.is_prepared(state, pod, "a") is None


def test_a_finalizer_is_not_added_twice(scene, plugin):
    claim = make_resource_claim("c")
    scene.tell(replace(claim, metadata=replace(claim.metadata, finalizers=(FINALIZER,))))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    (status,) = plugin.pre_bind(placed(scene, plugin, pod, "a"), pod, "a").commands
    assert isinstance(status, PatchStatus)


def test_config_without_requests_applies_to_all_of_them(scene, plugin):
    config = [{"opaque": {"driver": "d", "parameters": {"of": "claim"}}}]
    scene.tell(
        make_resource_claim("c", make_device_request("r"), make_device_request("s"), config=config)
    )
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    *_, status = plugin.pre_bind(placed(scene, plugin, pod, "a"), pod, "a").commands
    written = status.fields["allocation"]["devices"]["config"]
    assert written == [{"source": "FromClaim", **config[0]}]


def test_the_claims_of_a_pod_as_they_are_after_its_binding(scene, plugin):
    """A new allocation, a claim of other pods, and a claim that the pod already uses."""
    pod = scene.pod("p", **make_pod_resource_claims("new", "shared", "own"))
    scene.tell(
        make_resource_claim("new"),
        make_resource_claim("shared", status=make_claim_status("a", "gpu-1", reserved_for=["x"])),
        make_resource_claim("own", status=make_claim_status("a", "gpu-2", reserved_for=[pod.uid])),
    )
    state = placed(scene, plugin, pod, "a")
    bound = plugin.bound_claims(state, pod)
    shown = {
        claim.metadata.name: (
            [one.device for one in claim.status.allocation.devices.results],
            [one.uid for one in claim.status.reserved_for],
        )
        for claim in bound
    }
    assert shown == {
        "new": (["gpu-0"], [pod.uid]),
        "shared": (["gpu-1"], ["x", pod.uid]),
        "own": (["gpu-2"], [pod.uid]),
    }
    assert plugin.bound_claims(CycleState(), scene.pod("q")) == ()


def test_a_node_deleted_before_reserve_is_an_error(scene, plugin):
    """A claim that is allocated already needs no node."""
    scene.tell(make_resource_claim("c"))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    answer = plugin.reserve(state, pod, "gone")
    assert answer.code is Code.ERROR
    assert not scene.cluster.devices.is_assumed(make_resource_claim("c"))
    scene.tell(make_resource_claim("c", status=make_claim_status("a", "gpu-0")))
    assert plugin.reserve(scene.started(plugin, pod), pod, "gone") is None


def test_a_pod_joins_those_that_use_an_allocated_claim(scene, plugin):
    """Two concurrent reservations keep each other's pods."""
    scene.tell(make_resource_claim("c", status=make_claim_status("a", "gpu-0", reserved_for=["x"])))
    pods = [scene.pod(name, **make_pod_resource_claims("c")) for name in ("p", "q")]
    states = [placed(scene, plugin, pod, "a") for pod in pods]
    written = [
        plugin.pre_bind(state, pod, "a").commands for state, pod in zip(states, pods, strict=True)
    ]
    uids = [[one["uid"] for one in status.fields["reservedFor"]] for (status,) in written]
    assert uids == [["x", pods[0].uid], ["x", pods[0].uid, pods[1].uid]]
    assert all("allocation" not in status.fields for (status,) in written)
    plugin.unreserve(states[0], pods[0], "a")
    third = scene.pod("r", **make_pod_resource_claims("c"))
    (status,) = plugin.pre_bind(placed(scene, plugin, third, "a"), third, "a").commands
    assert [one["uid"] for one in status.fields["reservedFor"]] == ["x", pods[1].uid, third.uid]


def test_a_pod_with_a_reserved_claim_needs_no_writes(scene, plugin):
    """As after a restart of the scheduler."""
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    scene.tell(
        make_resource_claim("c", status=make_claim_status("a", "gpu-0", reserved_for=[pod.uid]))
    )
    assert plugin.pre_bind(placed(scene, plugin, pod, "a"), pod, "a") is None


def test_reservations_that_are_written_together_do_not_conflict(scene, plugin):
    """The first write changes the version of the claim; the second contains both reservations."""
    claim = make_resource_claim("c", status=make_claim_status("a", "gpu-0"))
    scene.tell(replace(claim, metadata=replace(claim.metadata, resource_version="7")))
    pods = [scene.pod(name, **make_pod_resource_claims("c")) for name in ("p", "q")]
    states = [placed(scene, plugin, pod, "a") for pod in pods]
    first, second = (
        plugin.pre_bind(state, pod, "a").commands[0]
        for state, pod in zip(states, pods, strict=True)
    )
    assert (first.resource_version, second.resource_version) == ("7", "")
    assert [one["name"] for one in second.fields["reservedFor"]] == ["p", "q"]


def test_a_pod_that_is_not_bound_releases_its_claims(scene, plugin):
    """Its reservation in the API is removed; the devices stay allocated for other pods."""
    pod = scene.pod("p", **make_pod_resource_claims("c", "d"))
    scene.tell(make_resource_claim("c"), make_resource_claim("d"))
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]))
    state = placed(scene, plugin, pod, "a")
    assert plugin.release_commands(state, pod, "a") == ()
    for name, consumers in (("c", [pod.uid]), ("d", ["x", pod.uid])):
        status = make_claim_status("a", "gpu-0", reserved_for=consumers)
        scene.tell(make_resource_claim(name, status=status))
    alone, shared = plugin.release_commands(state, pod, "a")
    assert (alone.target.name, alone.fields) == ("c", {"reservedFor": None})
    (other,) = shared.fields["reservedFor"]
    assert (shared.target.name, other["uid"]) == ("d", "x")


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (
            make_resource_claim("c", status=make_claim_status("b", "gpu-0")),
            "claim default/c got allocated elsewhere in the meantime",
        ),
        (
            make_resource_claim("c", terminating=True),
            "claim default/c got deleted in the meantime",
        ),
    ],
)
def test_changed_claims_fail_the_binding(scene, plugin, later, words):
    """The pod is retried."""
    scene.tell(make_resource_claim("c"))
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = placed(scene, plugin, pod, "a")
    scene.tell(later)
    assert plugin.pre_bind(state, pod, "a").message == words


# --- making room -----------------------------------------------------------------------------


def post_filtered(scene, plugin, *reserved_for):
    scene.tell(
        make_resource_claim("c", status=make_claim_status("a", "gpu-0", reserved_for=reserved_for))
    )
    pod = scene.pod("p", **make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    assert plugin.filter(state, pod, scene.table.find("b")) is not None
    return plugin.post_filter(state, pod, None)


def test_an_unused_allocation_that_rejects_all_nodes_is_deallocated(scene, plugin):
    """The allocation is kept if a pod uses it."""
    answer = post_filtered(scene, plugin)
    assert answer.status.message == "deallocation of ResourceClaim completed"
    (command,) = answer.commands
    assert isinstance(command, PatchStatus)
    assert command.fields == {"allocation": None, "reservedFor": None, "devices": None}


def test_an_allocation_used_by_other_pods_is_kept(scene, plugin):
    """The pod waits."""
    answer = post_filtered(scene, plugin, "x")
    assert (answer.status.message, answer.commands) == ("still not schedulable", ())


def test_pods_without_claims_and_unexamined_pods_have_different_messages(scene, plugin):
    """Both texts are upstream's."""
    pod, state = scene.pod("p"), CycleState()
    assert plugin.post_filter(state, pod, None).status.message == "not found"
    plugin.pre_filter(state, pod)
    assert plugin.post_filter(state, pod, None).status.message == "no new claims to deallocate"
