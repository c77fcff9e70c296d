"""The explanation of all pods: which are pending or not ready, and which nodes take no pods."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object

READY = [{"type": "Ready", "status": "True"}]
CREATED = "2026-03-01T10:00:00Z"
LOST = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
    "lastTransitionTime": "2026-03-01T10:04:00Z",
    "lastHeartbeatTime": "2026-03-01T10:05:00Z",
}


@pytest.fixture
def explained(snapshot):
    def explain(*objects, target="pods"):
        return explain_object(snapshot(*objects), target, SchedulerConfig(), NO_CHOICE)

    return explain


def placed(make, name, node, *, ready=True, **status):
    pod = make.pod(name, node_name=node, owner="web")
    pod["status"] |= {"conditions": READY, **status} if ready else status
    return pod


def pending(make, name, owner, *, cpu="1", **spec):
    pod = make.pod(name, owner=owner, cpu=cpu, **spec)
    pod["metadata"]["creationTimestamp"] = CREATED
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False"}],
    }
    return pod


def lost_node(make, name="lost"):
    node = make.node(name)
    node["spec"] = {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}
    node["status"]["conditions"] = [LOST]
    return node


def rows(answer, name):
    return next([dict(row) for row in table.rows] for table in answer.tables if table.name == name)


@pytest.fixture
def cluster(make):
    """Two workloads have pending pods; `lost` is not Ready, and a pod on it does not stop."""
    cordoned = make.node("cordoned")
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cordoned["spec"] = {"unschedulable": True, "taints": [taint]}
    stuck = placed(make, "stuck", "lost")
    stuck["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 30}
    return [
        make.node("a"),
        cordoned,
        lost_node(make),
        placed(make, "ready", "a"),
        placed(make, "down", "lost", ready=False),
        stuck,
        pending(make, "big-0", "big", cpu="9"),
        pending(make, "big-1", "big", cpu="9"),
        pending(make, "small-0", "small", cpu="1"),
    ]


@pytest.mark.parametrize("target", ["pods", "pod", "po"])
def test_all_pods_are_explained_at_once(explained, cluster, target):
    """Pending pods are grouped by workload and reason; terminating pods are only counted."""
    answer = explained(*cluster, target=target)
    assert answer.verdict == "3 of 5 pods are pending; 1 more pod on a node is not ready."
    assert answer.findings == (
        "2 of 3 nodes take no new pods.",
        "1 more pod is terminating, and stays so: on a node whose kubelet does not answer (lost).",
    )
    assert rows(answer, "pending") == [
        {
            "workload": "rs/default/big",
            "pods": 2,
            "pod": "default/big-0 and 1 more",
            "why": "Insufficient cpu, node(s) had untolerated taint(s), node(s) were unschedulable",
            "longest_s": 300.0,
        },
        {
            "workload": "rs/default/small",
            "pods": 1,
            "pod": "default/small-0",
            "why": "there is room now; it would go to a",
            "longest_s": 300.0,
        },
    ]
    assert rows(answer, "unready") == [
        {
            "workload": "rs/default/web",
            "pods": 1,
            "pod": "default/down",
            "why": "its node is not Ready",
        }
    ]
    assert rows(answer, "nodes") == [
        {"node": "cordoned", "pods": 0, "since_s": None, "why": "cordoned"},
        {
            "node": "lost",
            "pods": 2,
            "since_s": 60.0,
            "why": "not Ready (NodeStatusUnknown): Kubelet stopped posting node status",
        },
    ]


@pytest.mark.parametrize(
    ("taints", "why"),
    [
        ([("node.kubernetes.io/disk-pressure", "NoSchedule")],
         ["taint node.kubernetes.io/disk-pressure:NoSchedule"]),
        ([("node.kubernetes.io/unschedulable", "NoSchedule")],
         ["taint node.kubernetes.io/unschedulable:NoSchedule"]),
        ([("dedicated", "NoSchedule"), ("node.kubernetes.io/pid-pressure", "PreferNoSchedule")],
         []),
    ],
)  # fmt: skip
def test_nodes_with_temporary_taints_take_no_pods(explained, make, taints, why):
    """A taint that stays is left out: it keeps some pods away on purpose."""
    node = make.node("a")
    node["spec"] = {"taints": [{"key": key, "effect": effect} for key, effect in taints]}
    assert [row["why"] for row in rows(explained(node), "nodes")] == why


def test_pods_on_a_deleted_node_are_not_ready(explained, make):
    """Their status is Ready until pod garbage collection deletes them."""
    answer = explained(make.node("a"), placed(make, "one", "a"), placed(make, "two", "gone"))
    assert answer.verdict == "No pod is pending. 1 pod on a node is not ready."
    [row] = rows(answer, "unready")
    assert (row["pod"], row["why"]) == ("default/two", "its node does not exist")


def test_pods_that_fit_take_room_from_later_pods(explained, make):
    """The pod of higher priority is tried first."""
    objects = [
        make.node("a", cpu="2"),
        pending(make, "low", "low", cpu="2", priority=1),
        pending(make, "high", "high", cpu="2", priority=2),
    ]
    whys = {row["workload"]: row["why"] for row in rows(explained(*objects), "pending")}
    assert whys == {
        "rs/default/high": "there is room now; it would go to a",
        "rs/default/low": "Insufficient cpu",
    }


def test_the_verdicts_of_clusters_without_pending_pods(explained, make):
    """Each has its own sentence."""
    node = make.node("a")
    two = [placed(make, name, "a") for name in ("one", "two")]
    assert explained(node, *two).verdict == "All 2 pods have a node and are ready."
    assert explained(node, two[0]).verdict == "The pod has a node and is ready."
    assert explained(node).verdict == "The cluster has no unfinished pods."
    stuck = placed(make, "stuck", "lost")
    stuck["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 30}
    answer = explained(lost_node(make), stuck)
    assert answer.verdict == "Every unfinished pod is terminating."
    assert answer.findings[1].startswith("1 pod is terminating, and stays so: ")
    crashed = placed(make, "three", "a", ready=False)
    assert (
        explained(node, *two, crashed).verdict == "No pod is pending. 1 pod on a node is not ready."
    )


def test_the_command_prints_all_pods(cluster, tmp_path, capsys):
    """`fairlead explain` with the kind alone, from a file and in the two orders of options."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": cluster}))
    assert run(["explain", str(path), "pods"]) == 0
    printed = capsys.readouterr().out
    assert "3 of 5 pods are pending" in printed
    assert run(["explain", "pods", "--snapshot", str(path)]) == 0
    assert capsys.readouterr().out == printed
