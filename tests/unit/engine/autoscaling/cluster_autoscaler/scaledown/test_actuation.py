"""The deletion of nodes after it has started, and the delays of groups."""

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


def actions(**case):
    options = {"scale-down-unneeded-time": "20s", **case.pop("options", {})}
    case = {"name": "c", "replicasets": [REPLICA_SET], "pods": [], **case, "options": options}
    return decide_autoscaler(case)["actions"]


def times(found, op, name, key=None):
    return [
        one["t_ms"] // 1000
        for one in found
        if one["op"] == op
        and name in (one.get("node"), *one.get("nodes", ()))
        and key in (None, one.get("key"))
    ]


def test_the_failure_of_a_group_is_forgotten_by_the_next_scale_down():
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


def test_a_node_that_vanishes_is_still_deleted_from_its_group():
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
