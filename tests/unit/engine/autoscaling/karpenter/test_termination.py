"""Drains: the order of evictions, pods that do not end, and the termination grace period."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode, decode_as
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.autoscaling.karpenter.termination import drain_step
from fairlead.engine.core.command import DeleteObject, EvictPod
from fairlead.engine.core.instant import seconds

START = seconds(1_767_225_600)
EVERYTHING = {"operator": "Exists"}


def pod(name, owner="ReplicaSet", *, ends_s=None, **spec):
    meta = {"name": name, "namespace": "d", "uid": name}
    meta["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
    ]
    if ends_s is not None:
        meta["deletionTimestamp"] = format_timestamp(START + seconds(ends_s))
    spec = {"containers": [{"name": "c"}], "terminationGracePeriodSeconds": 30, **spec}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return decode({**manifest, "status": {"phase": "Running"}})


def step(*pods, at_s=0, grace=None):
    """Return what a drain does `at_s` seconds after the deletion of the NodeClaim."""
    spec = {"terminationGracePeriod": grace} if grace else {}
    meta = {"name": "m", "deletionTimestamp": format_timestamp(START)}
    claim = decode_as(NodeClaim, {"metadata": meta, "spec": spec})
    found = drain_step(claim, PodsOnNode(pods), START + seconds(at_s))
    evicted = [one.pod.name for one in found.commands if isinstance(one, EvictPod)]
    deleted = {
        one.target.name: one.grace_period_s
        for one in found.commands
        if isinstance(one, DeleteObject)
    }
    return evicted, deleted, found.remains


WEB, AGENT = pod("web"), pod("agent", "DaemonSet")
DNS = pod("dns", priorityClassName="system-cluster-critical")
PROXY = pod("proxy", "DaemonSet", priorityClassName="system-node-critical")


@pytest.mark.parametrize(
    ("pods", "evicted"),
    [
        ((PROXY, DNS, AGENT, WEB), ["web"]),
        ((PROXY, DNS, AGENT), ["agent"]),
        ((PROXY, DNS), ["dns"]),
        ((PROXY,), ["proxy"]),
        ((DNS, pod("web", ends_s=30)), []),
    ],
)
def test_groups_are_evicted_one_after_the_other(pods, evicted):
    # upstream: terminator.go:groupPodsByPriority
    assert step(*pods) == (evicted, {}, True)


@pytest.mark.parametrize(
    "staying",
    [
        pod("cni", "DaemonSet", tolerations=[EVERYTHING]),
        pod("static", "Node"),
        pod("lost", ends_s=-61),
    ],
)
def test_a_drain_does_not_wait_for_pods_that_it_does_not_evict(staying):
    # upstream: pkg/utils/pod/scheduling.go:IsDrainable
    assert step(staying) == ([], {}, False)


def test_a_drain_waits_a_minute_for_a_pod_that_does_not_end():
    assert step(pod("slow", ends_s=-60)) == ([], {}, True)


def test_pods_that_would_end_too_late_are_deleted_in_time():
    slow = pod("slow", priorityClassName="system-node-critical", terminationGracePeriodSeconds=600)
    assert step(WEB, slow, at_s=10, grace="5m") == (["web"], {"slow": 290}, True)
    assert step(WEB, slow, at_s=270, grace="5m") == ([], {"web": 30, "slow": 30}, True)
    assert step(WEB, at_s=400, grace="5m") == ([], {"web": 1}, True)


def test_a_pod_that_ends_after_the_deadline_gets_less_time():
    # upstream: pkg/utils/pod/scheduling.go:IsPodEligibleForForcedEviction
    def ending(at_s):
        return pod("slow", ends_s=at_s, terminationGracePeriodSeconds=600)

    assert step(ending(600), at_s=10, grace="5m") == ([], {"slow": 290}, True)
    assert step(ending(300), at_s=10, grace="5m") == ([], {}, True)
