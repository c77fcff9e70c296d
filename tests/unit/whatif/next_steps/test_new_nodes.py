"""Node types that have room for the pending pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import Taint
from fairlead.whatif.next_steps.new_nodes import (
    NewNodes,
    lacks_room,
    least_by_sum,
    least_copies,
    new_nodes_for,
    node_to_copy,
)
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

WEB = WorkloadRef("Deployment", "ns", "web")
OTHER = WorkloadRef("Deployment", "ns", "other")


def pod(cpu, owner=WEB, **fields):
    return PodEnd(namespace="ns", name="p", requests={"cpu": cpu}, owner=owner, **fields)


def node(name, cpu, *pods):
    allocatable = {"cpu": cpu, "pods": 3}
    return NodeEnd(
        name=name, zone="", unschedulable=False, allocatable=allocatable, requested={}, pods=pods
    )


AGENT = pod(500, OTHER, belongs_to_node=True)
SMALL, MIDDLE, LARGE = node("s", 1000), node("m", 4000), node("l", 9000)


@pytest.mark.parametrize(
    ("pending", "nodes", "expected"),
    [
        ([], [LARGE], None),
        ([pod(9500)], [SMALL, LARGE], None),
        ([pod(2000)], [SMALL, MIDDLE, LARGE], NewNodes(1, "m")),
        ([pod(2000)] * 3, [SMALL, MIDDLE], NewNodes(2, "m")),
        ([pod(3000), pod(500), pod(1000)], [MIDDLE], NewNodes(2, "m")),
        ([pod(1)] * 4, [MIDDLE], NewNodes(2, "m")),
        ([pod(2000)], [MIDDLE, node("home", 9000, pod(1))], NewNodes(1, "home")),
        ([pod(2000)], [MIDDLE, node("strange", 9000, pod(1, OTHER))], NewNodes(1, "m")),
        ([pod(1000)], [node("a", 1000, AGENT), MIDDLE], NewNodes(1, "m")),
        ([pod(2000)] * 2, [node("a", 4000, AGENT)], NewNodes(2, "a")),
    ],
    ids=[
        "no pods need no nodes",
        "no node is large enough",
        "the smallest node that is large enough",
        "pods share nodes",
        "the largest pods are placed first",
        "the pod limit of a node counts",
        "a node with pods of the workload is preferred",
        "pods of other workloads do not count",
        "a DaemonSet pod uses part of a small node",
        "a DaemonSet pod uses part of every node",
    ],
)
def test_new_nodes_fit_the_pending_pods(pending, nodes, expected):
    assert new_nodes_for(pending, nodes) == expected


@pytest.mark.parametrize(
    ("pending", "nodes", "expected"),
    [
        ([pod(3000)] * 3 + [pod(1000)], [], 3),
        ([pod(3000)] * 4, [], 4),
        ([pod(3000)] * 4, [node("free", 4000)], 3),
        ([pod(3000)] * 4, [node("little", 2000)], 4),
        ([pod(3000)] * 4, [replace(node("free", 4000), unschedulable=True)], 4),
        ([pod(3000)] * 4, [replace(node("over", 4000), requested={"cpu": 9000})], 4),
        ([pod(1)] * 4, [], 2),
        ([pod(1)], [LARGE], 1),
    ],
    ids=[
        "sum", "whole pods", "free room", "no room for a whole pod", "cordoned", "overcommitted",
        "pod limit", "never 0",
    ],
)  # fmt: skip
def test_the_sum_and_the_number_of_the_pods_are_lower_bounds(pending, nodes, expected):
    assert least_copies(pending, MIDDLE, nodes) == expected


@pytest.mark.parametrize(
    ("pending", "like"),
    [
        pytest.param([], MIDDLE, id="new nodes only for pods that are created later"),
        pytest.param([pod(1)], replace(MIDDLE, allocatable={}), id="a node that offers nothing"),
    ],
)
def test_new_nodes_without_a_known_bound_are_at_least_one(pending, like):
    assert least_by_sum(pending, like, []) == 1


def test_new_nodes_admit_the_pods_that_a_rule_keeps_off_other_nodes():
    """The smaller node runs pods of the other workload only; its labels may not match."""
    reason = "9 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector"
    pending = [pod(1000, OTHER), pod(1000, reason=reason)]
    small = node("small", 4000, pod(100, OTHER), pod(100, OTHER))
    assert new_nodes_for(pending, [small, node("large", 9000, pod(100))]) == NewNodes(1, "large")
    assert new_nodes_for(pending[:1], [small, node("large", 9000, pod(100))]) == NewNodes(
        1, "small"
    )


REPELLED = "node(s) didn't match pod anti-affinity rules"


@pytest.mark.parametrize(
    ("together", "count"),
    [
        pytest.param(1, 4, id="each pod needs a node of its own"),
        pytest.param(2, 2, id="two pods of the workload already run on one node"),
    ],
)
def test_pods_that_repel_each_other_share_no_more_nodes_than_today(together, count):
    nodes = [node("m", 4000, *[pod(100)] * together), node("n", 4000, pod(100))]
    pending = [pod(100, reason=f"Insufficient cpu, {REPELLED}") for _ in range(4)]
    assert new_nodes_for(pending, nodes) == NewNodes(count, "m")


def test_pods_of_different_workloads_that_repel_their_own_pods_share_nodes():
    nodes = [node("m", 4000, pod(100), pod(100, OTHER))]
    pending = [pod(100, owner, reason=REPELLED) for owner in (WEB, OTHER) for _ in range(2)]
    assert new_nodes_for(pending, nodes) == NewNodes(2, "m")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(3, NewNodes(1, "l"), id="one copy instead of two"),
        pytest.param(2, NewNodes(1, "m"), id="a smaller node is enough"),
    ],
)
def test_a_copy_of_the_node_that_the_pods_left_can_replace_several_nodes(count, expected):
    pending = [pod(2000)] * count
    assert new_nodes_for(pending, [MIDDLE, LARGE], left=["l"]) == expected
    assert new_nodes_for(pending, [MIDDLE, LARGE]) == NewNodes(-(-count // 2), "m")


def test_the_node_that_the_pods_left_is_no_template_if_another_node_is_preferred():
    """Node m runs a pod of the workload, so its labels admit the pods."""
    nodes = [node("m", 4000, pod(100)), LARGE]
    assert new_nodes_for([pod(2000)] * 3, nodes, left=["l"]) == NewNodes(2, "m")


def test_a_node_of_the_other_run_can_be_the_template():
    """The drained node has no pods at the end."""
    before = [MIDDLE, node("l", 9000, pod(1))]
    assert new_nodes_for([pod(2000)], [MIDDLE, LARGE], before) == NewNodes(1, "l")


def test_a_node_with_a_taint_is_the_template_only_for_pods_that_ran_there():
    tainted = replace(node("m", 4000), taints=(Taint(key="pool", effect="NoSchedule"),))
    assert new_nodes_for([pod(2000)], [tainted, LARGE]) == NewNodes(1, "l")
    assert new_nodes_for([pod(2000)], [tainted]) is None
    ran = replace(tainted, pods=(pod(1),))
    assert new_nodes_for([pod(2000)], [tainted, LARGE], [ran]) == NewNodes(1, "m")


@pytest.mark.parametrize(
    ("message", "is_cordoned", "expected"),
    [
        ("2 Insufficient cpu", False, NewNodes(1, "m")),
        ("1 Insufficient cpu, 1 node(s) were unschedulable", False, NewNodes(1, "m")),
        ("1 Insufficient cpu, 1 node(s) were unschedulable", True, None),
        ("1 Insufficient cpu, 1 node(s) had untolerated taint(s)", False, None),
    ],
    ids=[
        "lack of room",
        "another node is cordoned",
        "the node is cordoned",
        "an untolerated taint",
    ],
)
def test_pods_tolerate_the_taints_of_nodes_that_only_lack_room(message, is_cordoned, expected):
    """kube-scheduler checks taints before room, and room after cordons."""
    taint = Taint(key="pool", effect="NoSchedule")
    tainted = replace(node("m", 4000), taints=(taint,), unschedulable=is_cordoned)
    pending = pod(2000, reason=f"0/2 nodes are available: {message}.")
    assert new_nodes_for([pending], [tainted]) == expected


def test_pods_that_their_affinity_keeps_from_some_nodes_need_a_node_that_they_ran_on():
    """The reason does not say which nodes these are."""
    reasons = "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector"
    waiting = pod(2000, reason=f"0/2 nodes are available: {reasons}.")
    assert new_nodes_for([waiting], [MIDDLE, LARGE]) is None
    ran = node("l", 9000, pod(1))
    assert new_nodes_for([waiting], [MIDDLE, LARGE], [ran]) == NewNodes(1, "l")


LACKS_DEVICES = "0/2 nodes are available: 2 cannot allocate all claims."
GPU = "example.com/gpu"


def with_gpus(name, count, *pods):
    """Return a node with `count` devices of the driver d."""
    found = node(name, 9000, *pods)
    return replace(found, allocatable={**found.allocatable, "pods": 9, "d devices": count})


def user(count, owner=WEB, **fields):
    """Return a running pod that holds `count` devices of the driver d."""
    return pod(1, owner, devices={"d devices": count}, **fields)


def test_pods_that_lack_only_devices_need_nodes_that_run_their_workload():
    """A copy takes as many of these pods as it has devices for, not as many as its cores allow."""
    short = [pod(1, reason=LACKS_DEVICES)] * 3
    gpu = with_gpus("gpu", 2, user(1), user(1))
    assert all(map(lacks_room, short))
    assert new_nodes_for(short, [MIDDLE, gpu]) == NewNodes(2, "gpu")
    assert new_nodes_for(short, [MIDDLE, with_gpus("gpu", 2)], [gpu]) == NewNodes(2, "gpu")
    assert new_nodes_for(short, [MIDDLE, with_gpus("strange", 9, user(1, OTHER))]) is None
    shared = with_gpus("a", 9, user(1), user(1, OTHER))
    assert new_nodes_for(short, [shared, gpu]) == NewNodes(2, "gpu")


@pytest.mark.parametrize(
    ("gpus", "running", "expected"),
    [
        (3, [user(1), user(1, OTHER), user(1, OTHER)], NewNodes(1, "a")),
        (4, [user(2), user(2, OTHER)], NewNodes(2, "a")),
        (3, [user(1), user(1, OTHER, belongs_to_node=True)], NewNodes(2, "a")),
        (1, [user(1), user(1), user(1, OTHER)], NewNodes(1, "a")),
        (1, [pod(1)], None),
    ],
    ids=[
        "a copy has the devices that pods of other workloads use",
        "a pod needs as many devices as a running pod of its workload",
        "a DaemonSet pod uses a device of every node",
        "pods share a device",
        "devices of no node do not come with a new node",
    ],
)
def test_each_copy_has_the_devices_of_its_model(gpus, running, expected):
    short = [pod(1, reason=LACKS_DEVICES)] * 3
    assert new_nodes_for(short, [MIDDLE, with_gpus("a", gpus, *running)]) == expected


def test_the_order_of_pods_with_different_devices_does_not_matter():
    """The claims of a workload can allow several kinds of devices (firstAvailable)."""
    short, other = [pod(1, reason=LACKS_DEVICES)] * 3, pod(1, devices={"e devices": 1})
    for running in ([user(1), other, user(1)], [user(1), user(1), other]):
        assert new_nodes_for(short, [with_gpus("a", 1, *running)]) == NewNodes(1, "a")


@pytest.mark.parametrize("listed", [False, True], ids=["as devices", "by a device plugin"])
def test_a_node_may_provide_an_extended_resource_in_two_ways(listed):
    """With a device plugin, pods hold no devices of claims."""
    requests = {"cpu": 1, GPU: 1}
    short = [replace(pod(1, reason=LACKS_DEVICES), requests=requests)] * 3
    if listed:
        gpu = with_gpus("gpu", 0, replace(pod(1), requests=requests))
        gpu = replace(gpu, allocatable={**gpu.allocatable, GPU: 2})
    else:
        gpu = with_gpus("gpu", 2, replace(user(1), requests=requests))
    assert new_nodes_for(short, [MIDDLE, gpu]) == NewNodes(2, "gpu")


def test_pods_that_wait_for_a_claim_of_another_pod_do_not_lack_room():
    """A node that is rejected for its cpu would be rejected for the claim, too."""
    used = (
        "1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    reasons = "0/2 nodes are available: 1 Insufficient cpu"
    assert lacks_room(pod(2000, reason=f"{reasons}."))
    assert not lacks_room(pod(2000, reason=f"{reasons}, {used}."))


def test_a_pod_of_a_daemon_set_waits_for_room_on_its_own_node():
    reason = "0/2 nodes are available: 1 Insufficient cpu."
    assert lacks_room(pod(2000, reason=reason))
    assert not lacks_room(pod(2000, reason=reason, belongs_to_node=True))


VOLUME = "node(s) didn't match PersistentVolume's node affinity"
SPREAD = "node(s) didn't match pod topology spread constraints"
CORDONED = "node(s) were unschedulable"
POOL = {"pool": "x"}


def labelled(name, *, cordoned=False, **labels):
    return replace(
        node(name, 4000),
        labels={"kubernetes.io/hostname": name, **labels},
        unschedulable=cordoned,
    )


@pytest.mark.parametrize(
    "reason",
    [
        "queue research has reached its limit",
        'queue "research" does not exist',
        'pod "ns/p": ResourceClaim not created yet',
        f"0/2 nodes are available: 1 {CORDONED}, 1 resourceclaim not available on the node.",
    ],
)
def test_no_new_node_helps_a_pod_that_does_not_wait_for_a_node(reason):
    waiting = pod(1, reason=reason)
    assert node_to_copy([waiting], {"ns/p": "a"}, [labelled("a"), labelled("b")]) is None
    assert not lacks_room(waiting)


@pytest.mark.parametrize(
    ("reasons", "others", "expected"),
    [
        ([VOLUME, CORDONED], [labelled("b")], "a"),
        ([VOLUME, CORDONED], [labelled("b", **POOL)], None),
        ([VOLUME, CORDONED], [labelled("b", cordoned=True, **POOL)], "a"),
        ([SPREAD, VOLUME, CORDONED], [labelled("b", **POOL)], "a"),
        (["Insufficient cpu", CORDONED], [labelled("b")], None),
        (["Insufficient cpu", SPREAD, CORDONED], [labelled("b")], "a"),
    ],
    ids=[
        "no other node has its labels",
        "a node with its labels rejects the pod for its volume",
        "the node with its labels is cordoned, too",
        "the spread rejects the node with its labels",
        "other nodes lack only room",
        "nodes with room do not fit",
    ],
)
def test_the_node_that_pods_left_is_the_template_if_other_nodes_do_not_fit(
    reasons, others, expected
):
    left = labelled("a", cordoned=True, **POOL)
    waiting = pod(1000, reason=f"0/2 nodes are available: {', '.join(f'1 {r}' for r in reasons)}.")
    found = node_to_copy([waiting], {waiting.key: "a"}, [left, *others])
    assert (found and found.name) == expected
