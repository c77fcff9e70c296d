"""The course of a scale-down after it has started, and the deletion delays of node groups."""

from __future__ import annotations

import pytest

from fairlead.conformance.autoscaler.case import decide_autoscaler

CREATED = "2025-12-31T23:00:00Z"
TAINT = "ToBeDeletedByClusterAutoscaler"
DELAYING = "delay-deletion.cluster-autoscaler.kubernetes.io/volumes"


def node(name, *, cpu="4", annotations=None):
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    group = name.partition("-")[0]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": CREATED}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": CREATED,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": annotations or {},
        },
        "spec": {"providerID": f"fleet://{group}/{name}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def group(name, least, **options):
    return {"id": name, "min": least, "max": 9, "template": node("t"), "options": options}


def pod(name, node_name, *, cpu="1", ends_after_ms=3000):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    return {
        "metadata": {
            "name": name,
            "namespace": "d",
            "creationTimestamp": CREATED,
            "ownerReferences": [{**owner, "controller": True}],
            "annotations": {"fleet/terminate-ms": str(ends_after_ms)},
        },
        "spec": {**spec, "nodeName": node_name, "schedulerName": "default-scheduler"},
        "status": {"phase": "Running", "startTime": CREATED},
    }


REPLICA_SET = {
    "metadata": {"name": "web", "namespace": "d", "uid": "web"},
    "spec": {"replicas": 9, "selector": {"matchLabels": {"app": "web"}}},
    "status": {"replicas": 9},
}


def decided(**case):
    options = {"scale-down-unneeded-time": "20s", **case.pop("options", {})}
    case = {"name": "c", "replicasets": [REPLICA_SET], "pods": [], **case, "options": options}
    return decide_autoscaler(case)


def actions(**case):
    return decided(**case)["actions"]


def times(found, op, name, key=None):
    return [
        one["t_ms"] // 1000
        for one in found
        if one["op"] == op
        and name in (one.get("node"), *one.get("nodes", ()))
        and key in (None, one.get("key"))
    ]


def test_the_next_scale_down_ignores_an_earlier_failure_of_the_group():
    # upstream: group_deletion_scheduler.go: ResetAndReportMetrics, addToBatcher
    found = actions(
        duration_ms=400_000,
        nodeGroups=[group("a", 0, **{"zero-or-max-node-scaling": True}), group("b", 1)],
        nodes=[node("a-0"), node("a-1"), node("b-0", cpu="16")],
        pods=[
            pod("p", "a-0"),
            pod("q", "a-1", ends_after_ms=100_000),
            pod("r", "b-0", cpu="9"),
        ],
        evictFailures=[{"key": "d/p", "count": -1}],
        options={"max-drain-parallelism": 2, "max-pod-eviction-time": "30s"},
    )
    (start,) = times(found, "taint", "a-1", TAINT)
    assert times(found, "taint", "a-0", TAINT) == [start]
    assert times(found, "untaint", "a-0", TAINT) == [start + 35]
    assert times(found, "untaint", "a-1", TAINT) == []
    assert times(found, "delete_nodes", "a-1") == []


def test_a_refused_eviction_starts_no_delay_of_its_group():
    # upstream: delete_in_batch.go: deleteNodesFromCloudProvider calls RegisterFailedScaleDown
    found = actions(
        duration_ms=200_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0", cpu="16")],
        pods=[pod("p", "a-0"), pod("r", "b-0", cpu="9")],
        evictFailures=[{"key": "d/p", "count": 2}],
        options={
            "max-pod-eviction-time": "15s",
            "scale-down-delay-type-local": True,
            "scale-down-delay-after-failure": "10m",
        },
    )
    first, second = times(found, "taint", "a-0", TAINT)
    assert second - first == 60
    assert len(times(found, "delete_nodes", "a-0")) == 1


@pytest.mark.parametrize(
    ("timeout", "gone_after", "waited"),
    [("2m", None, 125), ("2m", 17, 20), ("0s", None, 5), ("12s", None, 17)],
)
def test_annotations_delay_the_deletion_of_a_node(timeout, gone_after, waited):
    # upstream: wait_for_delay_deletion.go: WaitForDelayDeletion
    start = 40
    script = []
    if gone_after is not None:
        script = [
            {
                "t_ms": (start + gone_after) * 1000,
                "op": "annotate",
                "node": "a-0",
                "annotations": {DELAYING: ""},
            }
        ]
    found = actions(
        duration_ms=200_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0", annotations={DELAYING: "1"}), node("b-0")],
        script=script,
        options={"node-deletion-delay-timeout": timeout},
    )
    assert times(found, "taint", "a-0", TAINT) == [start]
    assert times(found, "delete_nodes", "a-0") == [start + waited]


def test_a_node_deleted_by_others_is_still_deleted_from_its_group():
    # upstream: actuator.go: createSnapshot takes the nodes from the start of the loop
    found = actions(
        duration_ms=100_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0")],
        script=[{"t_ms": 42_000, "op": "kill_instance", "node": "a-0"}],
    )
    assert times(found, "taint", "a-0", TAINT) == [40]
    (deletion,) = [one for one in found if one["op"] == "delete_nodes"]
    assert (deletion["t_ms"], deletion["unknown"]) == (45_000, ["fleet://a/a-0"])


def test_growth_to_the_minimum_size_starts_the_delay_of_its_group():
    # upstream: executor.go: executeScaleUp calls RegisterScaleUp for every increase
    found = actions(
        duration_ms=300_000,
        nodeGroups=[group("a", 2)],
        nodes=[node("a-0")],
        script=[{"t_ms": 65_000, "op": "set_min", "key": "a", "value": 0}],
        options={
            "enforce-node-group-min-size": True,
            "scale-down-delay-type-local": True,
            "scale-down-delay-after-add": "150s",
        },
    )
    assert [(one["t_ms"], one["target"]) for one in found if one["op"] == "increase"] == [
        (10_000, 2)
    ]
    deletions = [one for one in found if one.get("key") == TAINT and one["op"] == "taint"]
    assert min(one["t_ms"] for one in deletions) == 190_000


def messages(found, reason):
    return sorted(one["message"] for one in found["events"] if one["reason"] == reason)


def test_the_last_ready_node_of_a_whole_group_decides_how_its_deletion_is_reported():
    # upstream: group_deletion_scheduler.go: addToBatcher passes its `drain` for all queued nodes
    found = decided(
        duration_ms=100_000,
        nodeGroups=[group("a", 0, **{"zero-or-max-node-scaling": True}), group("b", 1)],
        nodes=[node("a-0"), node("a-1"), node("b-0", cpu="16")],
        pods=[pod("p", "a-1"), pod("r", "b-0", cpu="9")],
    )
    removed = [text for text in messages(found, "ScaleDown") if text.endswith("with drain")]
    assert removed == [f"Scale-down: node {name} removed with drain" for name in ("a-0", "a-1")]


def test_the_failure_of_a_drain_is_reported_for_the_waiting_nodes_of_its_group():
    # upstream: group_deletion_scheduler.go: AbortNodeDeletion
    found = decided(
        duration_ms=100_000,
        nodeGroups=[group("a", 0, **{"zero-or-max-node-scaling": True}), group("b", 1)],
        nodes=[node("a-0"), node("a-1"), node("b-0", cpu="16")],
        pods=[pod("p", "a-1"), pod("r", "b-0", cpu="9")],
        evictFailures=[{"key": "d/p", "count": -1}],
        options={"max-pod-eviction-time": "10s"},
    )
    texts = [text for text in messages(found, "ScaleDownFailed") if "other nodes" in text]
    assert texts == [
        "failed to drain and delete node: couldn't scale down other nodes in this node group"
    ]


def test_pods_of_schedulers_that_are_not_allowed_keep_a_node_from_being_deleted_as_empty():
    # upstream: actuator.go: createSnapshot lists all pods
    theirs = pod("p", "a-0")
    theirs["spec"]["schedulerName"] = "theirs"
    found = decided(
        duration_ms=60_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0")],
        pods=[theirs],
        options={"allowed-scheduler-names": ["default-scheduler"]},
    )
    assert times(found["actions"], "taint", "a-0", TAINT) == [40, 50]
    assert times(found["actions"], "untaint", "a-0", TAINT) == [45, 55]
    (text,) = set(messages(found, "ScaleDownFailed"))
    assert text.endswith('failed to delete empty node "a-0", new pods scheduled')


def test_pods_of_schedulers_that_are_not_allowed_are_evicted_by_a_drain():
    theirs = pod("p", "a-0", ends_after_ms=17_000)
    theirs["spec"]["schedulerName"] = "theirs"
    found = actions(
        duration_ms=100_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0", cpu="16")],
        pods=[theirs, pod("q", "a-0"), pod("r", "b-0", cpu="9")],
        options={"allowed-scheduler-names": ["default-scheduler"]},
    )
    evicted = {one["pod"] for one in found if one["op"] == "evict"}
    assert evicted == {"d/p", "d/q"}
    assert times(found, "delete_nodes", "a-0") == [65]


def test_a_pod_that_must_complete_keeps_an_empty_node():
    waiting = pod("p", "a-0")
    waiting["metadata"]["annotations"] = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"
    }
    found = decided(
        duration_ms=60_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0")],
        script=[{"t_ms": 42_000, "op": "create_pods", "pods": [waiting]}],
    )
    (text,) = messages(found, "ScaleDownFailed")
    assert text.endswith('failed to delete empty node "a-0", active on-completion pods present')


def test_daemon_set_pods_of_an_empty_node_are_evicted_by_priority():
    # upstream: drain.go: EvictDaemonSetPods
    daemon = {"metadata": {"name": "web", "namespace": "d", "uid": "web"}, "spec": {"template": {}}}
    pods = []
    for name, priority in (("high", 200), ("low", 0)):
        one = pod(name, "a-0", cpu="100m")
        one["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
        one["spec"]["priority"] = priority
        pods.append(one)
    found = actions(
        duration_ms=100_000,
        nodeGroups=[group("a", 0), group("b", 1)],
        nodes=[node("a-0"), node("b-0")],
        daemonsets=[daemon],
        pods=pods,
        evictFailures=[{"key": "d/low", "count": 2}],
        options={"daemonset-eviction-for-empty-nodes": True, "drain-priority-config": "0:30,100:9"},
    )
    evictions = [(one["t_ms"] // 1000, one["pod"]) for one in found if one["op"] == "evict"]
    assert evictions == [(45, "d/low"), (55, "d/low"), (65, "d/low"), (65, "d/high")]


@pytest.mark.parametrize(("is_forced", "found"), [(False, "delete_failed"), (True, "delete_nodes")])
def test_failed_instances_below_the_minimum_size_are_deleted_by_force(is_forced, found):
    # upstream: static_autoscaler.go: deleteCreatedNodesWithErrors
    failed = {"id": "fleet://a/x", "state": "Creating", "class": "OutOfResources", "code": "C"}
    loops = decide_autoscaler(
        {
            "name": "c",
            "nodes": [],
            "pods": [],
            "nodeGroups": [{**group("a", 1), "instances": [failed]}],
            "options": {"force-delete-failed-nodes": is_forced},
        }
    )["loops"]
    assert [one["op"] for one in loops[0]["actions"]] == [found]
