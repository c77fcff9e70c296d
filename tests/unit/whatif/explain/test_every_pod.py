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
        pending(make, "big-0", "big", cpu="4"),
        pending(make, "big-1", "big", cpu="4"),
        pending(make, "small-0", "small", cpu="1"),
    ]


@pytest.mark.parametrize("target", ["pods", "pod", "po"])
def test_all_pods_are_explained_at_once(explained, cluster, target):
    """Pending pods are grouped by workload and reason; terminating pods are only counted."""
    answer = explained(*cluster, target=target)
    assert answer.verdict == "3 of 5 pods are pending; 1 more pod on a node is not ready."
    assert answer.findings == (
        "2 of 3 nodes take no new pods.",
        "1 more pod is terminating, and stays so, because the kubelet of lost does not answer.",
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
        {
            "node": "lost",
            "zone": "",
            "pods": 2,
            "since_s": 60.0,
            "why": "not Ready (NodeStatusUnknown): Kubelet stopped posting node status",
        },
        {"node": "cordoned", "zone": "", "pods": 0, "since_s": None, "why": "cordoned"},
    ]


def test_a_step_explains_the_pending_pod_that_is_scheduled_first(explained, cluster, make):
    """The other pods of its workload need the same, and pods of lower priority come later."""
    cluster += [
        make.workload("ReplicaSet", "important", replicas=1),
        pending(make, "first", "important", cpu="4", priority=5),
    ]
    for target in ("pods", "rs/important"):
        [command] = [one.command for one in explained(*cluster, target=target).steps]
        assert command.startswith("fairlead explain ")
        assert command.endswith(" pod/default/first")
    gate = {"schedulingGates": [{"name": "x.example/wait"}]}
    untried = [
        pending(make, "gated", "important", cpu="4", priority=9, **gate),
        pending(make, "unknown", "important", cpu="4", priority=9, schedulerName="custom"),
        pending(make, "fits", "important", cpu="1", priority=8),
    ]
    last = pending(make, "a-last", "important", cpu="4")  # by key, it comes first
    for target in ("pods", "rs/important"):
        [step] = explained(*cluster, *untried, last, target=target).steps
        assert step.command.endswith(" pod/default/first")
        assert explained(make.node("a"), *untried, target="pods").steps == ()
    running = [one for one in cluster if one["metadata"]["name"] in ("a", "ready")]
    assert explained(*running).steps == ()


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


def test_pods_with_a_negative_priority_come_last(explained, make):
    """They exist to give way, and one pod of a service matters more."""
    spare = [pending(make, f"spare-{number}", "spare", cpu="9", priority=-1) for number in range(2)]
    answer = explained(make.node("a"), *spare, pending(make, "web-0", "web", cpu="9"))
    assert answer.verdict == "3 of 3 pods are pending, 2 of them with a negative priority."
    assert [row["workload"] for row in rows(answer, "pending")] == [
        "rs/default/web",
        "rs/default/spare",
    ]
    assert explained(make.node("a"), *spare).verdict == (
        "2 of 2 pods are pending, all of them with a negative priority."
    )
    assert explained(make.node("a"), spare[0]).verdict == (
        "1 of 1 pod is pending, with a negative priority."
    )


def test_many_workloads_with_one_reason_share_a_row(explained, make):
    """The workload with the most pods is named. JSON has the rows of the workloads, too."""
    jobs = [pending(make, f"job-{number}-0", f"job-{number}", cpu="9") for number in range(11)]
    extra = pending(make, "job-7-1", "job-7", cpu="9")
    answer = explained(make.node("a"), *jobs, extra, pending(make, "vast-0", "vast", cpu="1"))
    tables = {table.name: table for table in answer.tables}
    assert rows(answer, "pending_reasons") == [
        {
            "workloads": 11,
            "workload": "rs/default/job-7 and 10 more",
            "pods": 12,
            "pod": "default/job-0-0 and 11 more",
            "why": "no node is large enough; the largest has 4 cpu",
            "longest_s": 0.0,
        },
        {
            "workloads": 1,
            "workload": "rs/default/vast",
            "pods": 1,
            "pod": "default/vast-0",
            "why": "there is room now; it would go to a",
            "longest_s": 0.0,
        },
    ]
    assert list(tables)[:2] == ["pending_reasons", "pending"]
    assert (len(tables["pending"].rows), tables["pending"].shown) == (12, 0)
    assert len(answer.to_json()["pending"]) == 12


@pytest.mark.parametrize(
    ("capacity", "why"),
    [
        ({}, "no node has nvidia.com/gpu"),
        ({"nvidia.com/gpu": "1"}, "no node is large enough; the largest has 1 nvidia.com/gpu"),
        ({"nvidia.com/gpu": "2"}, "Insufficient nvidia.com/gpu"),
    ],
)
def test_devices_that_cannot_be_allocated_now_belong_to_the_size_of_a_node(
    explained, make, capacity, why
):
    """The kubelet reports no allocatable devices while the device plugin is stopped."""
    node, pod = make.node("a"), pending(make, "p", "p", cpu="1")
    node["status"]["capacity"] = capacity
    node["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    devices = {"nvidia.com/gpu": "2"}
    pod["spec"]["containers"][0]["resources"] = {"requests": devices, "limits": devices}
    [row] = rows(explained(node, pod), "pending")
    assert row["why"] == why


def test_reasons_are_in_the_json_of_a_small_cluster(explained, cluster):
    """A terminal shows the rows of the workloads only, because there are few of them."""
    answer = explained(*cluster)
    assert [table.name for table in answer.tables] == [
        "pending",
        "uncreated",
        "unready",
        "nodes",
    ]
    found = answer.to_json()
    assert [row["workload"] for row in found["pending_reasons"]] == [
        "rs/default/big",
        "rs/default/small",
    ]
    assert [row["pods"] for row in found["unready_reasons"]] == [1]
    assert [(row["nodes"], row["why"]) for row in found["node_reasons"]] == [
        (1, "cordoned"),
        (1, "not Ready (NodeStatusUnknown): Kubelet stopped posting node status"),
    ]


REFUSED = {
    "type": "ReplicaFailure",
    "status": "True",
    "reason": "FailedCreate",
    "message": 'pods "web-x" is forbidden: exceeded quota: q.',
    "lastTransitionTime": CREATED,
}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "row"),
    [
        ("Deployment", {}, {"replicas": 1, "conditions": [REFUSED]},
         (2, "deploy/default/web", 300.0, 'pods "web-x" is forbidden: exceeded quota: q')),
        ("Deployment", {"paused": True}, {"observedGeneration": 1},
         (3, "deploy/default/web", None, "it is paused")),
        ("StatefulSet", {}, {"replicas": 2},
         (1, "sts/default/web", None,
          "it creates a pod only if all pods with lower numbers are ready")),
        ("StatefulSet", {}, {"replicas": 2, "availableReplicas": 2},
         (1, "sts/default/web", None, "its controller has not created them")),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}, {"replicas": 2},
         (1, "sts/default/web", None, "its controller has not created them")),
        ("ReplicaSet", {}, {"replicas": 2},
         (1, "rs/default/web", None, "its controller has not created them")),
        ("DaemonSet", {}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 1},
         (2, "ds/default/web", None, "its controller has not created them")),
        ("DaemonSet", {}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 3}, None),
        ("DaemonSet", {}, {}, None),
        ("Deployment", {}, {"replicas": 4}, None),
        ("Deployment", {}, {}, None),
    ],
)  # fmt: skip
def test_workloads_that_lack_pods_are_listed(explained, make, kind, spec, status, row):
    """The status says how many pods there are, so a dump of one namespace lacks none of others."""
    workload = make.workload(kind, replicas=3)
    workload["spec"] |= spec
    workload["status"] = status
    answer = explained(make.node("a"), workload, placed(make, "other", "a"), lost_node(make))
    found = [
        (one["pods"], one["workload"], one["since_s"], one["why"])
        for one in rows(answer, "uncreated")
    ]
    assert found == ([] if row is None else [row])
    named = [] if row is None else [f"{row[0]} pod{'s' * (row[0] > 1)} of {row[1]}"]
    assert [one.partition(" is ")[0].partition(" are ")[0] for one in answer.findings[:-1]] == named
    assert answer.facts["uncreated_pods"] == (0 if row is None else row[0])


@pytest.mark.parametrize(("existing", "missing"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_pods_of_a_workload_whose_status_is_older_are_not_missing(
    explained, make, existing, missing
):
    """kubectl get reads the workloads before the pods. Here, one pod existed at that time."""
    workload = make.workload("ReplicaSet", replicas=3)
    workload["status"] = {"replicas": 1}
    pods = [placed(make, f"web-{number}", "a") for number in range(existing)]
    workload["metadata"]["uid"] = pods[0]["metadata"]["ownerReferences"][0]["uid"]
    answer = explained(make.node("a"), workload, *pods)
    assert [one["pods"] for one in rows(answer, "uncreated")] == [missing] * (missing > 0)


FULL = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
WAITS = "its controller has not created them"


@pytest.mark.parametrize(
    ("spec", "status", "row"),
    [
        ({}, {"active": 1}, (2, WAITS)),
        ({}, {"active": 1, "failed": 1},
         (2, f"{WAITS}; after failures, it waits up to 10 minutes")),
        ({}, {"active": 0, "succeeded": 2}, (3, WAITS)),
        ({"completionMode": "Indexed"}, {"succeeded": 2, "failedIndexes": "0,3-4"}, None),
        ({"podReplacementPolicy": "Failed"}, {"active": 1, "terminating": 2}, None),
        ({"podReplacementPolicy": "TerminatingOrFailed"}, {"active": 1, "terminating": 2},
         (2, WAITS)),
        ({"suspend": True}, {"active": 0}, None),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, None),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_jobs_that_lack_pods_are_listed(explained, make, spec, status, row):
    """A Job of a CronJob is listed too, because its owner gets no row."""
    job = lacking_job(make)
    job["spec"] |= spec
    job["status"] = status
    answer = explained(make.node("a"), job, placed(make, "other", "a"))
    found = [(one["workload"], one["pods"], one["why"]) for one in rows(answer, "uncreated")]
    assert found == ([] if row is None else [("job/default/sum", *row)])


def test_a_trial_finds_the_quota_that_stops_a_job(explained, make):
    """Jobs have no condition ReplicaFailure."""
    job = lacking_job(make)
    job["status"] = {"ready": 0}
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }  # fmt: skip
    answer = explained(make.node("a"), job, placed(make, "other", "a"), quota)
    [row] = rows(answer, "uncreated")
    assert row["why"] == "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"


@pytest.mark.parametrize(("pods", "expected"), [("3", []), ("2", [(2, FULL)])])
@pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
def test_a_workload_without_a_status_is_listed_if_its_next_pod_is_refused(
    explained, make, kind, pods, expected
):
    """A file of manifests has no statuses; the pods of the workload are counted."""
    job = lacking_job(make) if kind == "Job" else make.workload(kind, "sum", replicas=3)
    own = placed(make, "sum-0", "a")
    own["metadata"]["ownerReferences"] = [{
        "apiVersion": job["apiVersion"], "kind": kind, "name": "sum", "uid": "j",
        "controller": True,
    }]  # fmt: skip
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }  # fmt: skip
    answer = explained(make.node("a"), job, own, placed(make, "other", "a"), quota)
    assert [(one["pods"], one["why"]) for one in rows(answer, "uncreated")] == expected


def lacking_job(make):
    job = make.workload("Job", "sum", restartPolicy="Never")
    job["apiVersion"] = "batch/v1"
    job["spec"] = {"parallelism": 3, "completions": 5, "template": job["spec"]["template"]}
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "sum", "uid": "c"}
    job["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return job


@pytest.mark.parametrize(
    ("kubelet", "finalizers", "why"),
    [
        ("silent", [], "the kubelet of lost does not answer"),
        ("ready", ["x.example/y"], "finalizers keep it (x.example/y)"),
        ("ready", [], None),
    ],
    ids=["its kubelet does not answer", "a finalizer keeps it", "it ends after its grace period"],
)
def test_a_stateful_set_lacks_the_pods_whose_old_pods_do_not_end(
    explained, make, kubelet, finalizers, why
):
    """The status of a StatefulSet counts terminating pods, so it shows no missing pod."""
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "serviceName": "db",
            "template": {"metadata": {"labels": {"app": "db"}},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}}}  # fmt: skip
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet",
             "metadata": {"name": "db", "namespace": "default", "uid": "u-db"},
             "spec": spec, "status": {"replicas": 2, "readyReplicas": 1}}  # fmt: skip
    first = placed(make, "db-0", "a", startTime="2026-03-01T10:06:00Z")
    pods = [first, placed(make, "db-1", "lost"), placed(make, "db-7", "lost")]
    for pod in pods:
        reference = pod["metadata"]["ownerReferences"][0]
        reference |= {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-db"}
    for pod in pods[1:]:  # db-7 is of a time when the StatefulSet had more replicas
        pod["metadata"] |= {"deletionTimestamp": "2026-03-01T10:05:00Z",
                            "deletionGracePeriodSeconds": 0, "finalizers": finalizers}  # fmt: skip
    lost = lost_node(make) if kubelet == "silent" else make.node("lost")
    answer = explained(make.node("a"), lost, owner, *pods)
    found = [(row["pods"], row["workload"], row["why"]) for row in rows(answer, "uncreated")]
    assert found == (
        [(1, "sts/default/db", f"waits for the end of default/db-1: {why}")] * bool(why)
    )
    assert [one.command for one in answer.steps] == (
        ["kubectl taint nodes lost node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"]
        if kubelet == "silent"
        else []
    )


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_workloads_of_custom_resources_that_lack_pods_are_listed(explained, make, kind):
    workload = make.workload(kind, replicas=3)
    workload["status"] = {"replicas": 1}
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "r"}
    workload["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    [row] = rows(explained(make.node("a"), workload, placed(make, "other", "a")), "uncreated")
    assert row["pods"] == 2


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([REFUSED], ('pods "web-x" is forbidden: exceeded quota: q', 300.0)),
        ([], ("its controller has not created them", None)),
    ],
)
def test_the_replica_set_of_a_paused_deployment_says_why_it_lacks_pods(
    explained, make, conditions, expected
):
    """A paused Deployment still scales, but has no condition ReplicaFailure."""
    web, old = make.workload("Deployment", "web", replicas=3), make.workload("ReplicaSet", "web-1")
    web["spec"]["paused"], web["status"] = True, {"replicas": 1}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web"}
    old["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    old["status"] = {"replicas": 1, "conditions": conditions}
    [row] = rows(explained(lost_node(make), web, old), "uncreated")
    assert (row["why"], row["since_s"]) == expected


@pytest.mark.parametrize("is_namespace", [True, False])
def test_workloads_that_are_being_deleted_lack_no_pods(explained, make, is_namespace):
    """Their controllers create no pods, nor do those of a namespace that is being deleted."""
    web = make.workload("Deployment", "web", replicas=3)
    web["status"] = {"replicas": 1}
    deleted = {"deletionTimestamp": CREATED, "finalizers": ["example.com/hold"]}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    (namespace if is_namespace else web)["metadata"] |= deleted
    assert rows(explained(make.node("a"), namespace, web), "uncreated") == []


def test_pods_of_several_workloads_are_counted(explained, make):
    """A ReplicaSet of a Deployment is not counted again."""
    deployment = make.workload(replicas=3)
    deployment["status"] = {"replicas": 1}
    owned = make.workload("ReplicaSet", "web-1", replicas=3)
    owned["status"] = {"replicas": 1}
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web",
         "controller": True}
    ]  # fmt: skip
    alone = make.workload("ReplicationController", "old", replicas=1)
    alone["apiVersion"] = "v1"
    alone["spec"]["selector"] = {"app": "old"}
    alone["status"] = {"replicas": 0}
    answer = explained(make.node("a"), deployment, owned, alone, placed(make, "other", "a"))
    assert answer.findings[0] == "3 pods of deploy/default/web and rc/default/old are not created."


def test_many_nodes_with_one_reason_share_a_row(explained, make):
    """The row has the number of nodes and pods, and the longest time out of service."""
    lost = [lost_node(make, f"lost-{number:02}") for number in range(11)]
    lost[3]["status"]["conditions"] = [LOST | {"lastTransitionTime": "2026-03-01T10:01:00Z"}]
    answer = explained(*lost, placed(make, "down", "lost-05", ready=False))
    assert rows(answer, "node_reasons") == [
        {
            "nodes": 11,
            "node": "lost-05 and 10 more",
            "zone": "",
            "pods": 1,
            "since_s": 240.0,
            "why": "not Ready (NodeStatusUnknown): Kubelet stopped posting node status",
        }
    ]
    assert len(rows(answer, "nodes")) == 11


def test_groups_that_wait_together_name_one_of_them(explained, make):
    """Each group has its own state, so the row names a group to explain."""
    pods = [pending(make, f"m-{number}", "train", schedulerName="kube-batch") for number in "01"]
    for pod, group in zip(pods, ("first", "second"), strict=True):
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    [row] = rows(explained(make.node("a"), *pods), "pending")
    assert row["why"] == (
        "its PodGroup does not exist, for example: explain podgroup/default/first"
    )
    [row] = rows(explained(make.node("a"), pods[1]), "pending")
    assert row["why"] == "its PodGroup does not exist: explain podgroup/default/second"


ADDED = "2026-03-01T10:02:00Z"
CORDONED = {
    "manager": "kubectl",
    "operation": "Update",
    "time": "2026-03-01T10:03:00Z",
    "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
}
LABELLED = {"manager": "labeller", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}


@pytest.mark.parametrize(
    ("managed", "time_added", "ready", "expected"),
    [
        ([LABELLED], "", [], ("cordoned", None)),
        ([LABELLED], ADDED, [], ("cordoned", 120.0)),
        ([CORDONED | {"manager": ""}], "", [], ("cordoned", 60.0)),
        ([CORDONED | {"time": "2026-03-01T10:06:00Z"}], "", [], ("cordoned by kubectl", 0.0)),
        ([CORDONED | {"time": "today"}], "", [], ("cordoned by kubectl", None)),
        ([LABELLED, CORDONED], "", [], ("cordoned by kubectl", 60.0)),
        ([LABELLED, CORDONED], ADDED, [], ("cordoned by kubectl", 120.0)),
        ([CORDONED], "", [LOST | {"message": "", "lastHeartbeatTime": CREATED}],
         ("cordoned by kubectl; not Ready (NodeStatusUnknown)", 60.0)),
    ],
)  # fmt: skip
def test_a_cordoned_node_names_the_client(explained, make, managed, time_added, ready, expected):
    """The managedFields name the client. The time is that of the first reason."""
    node = make.node("a")
    node["metadata"]["managedFields"] = managed
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    node["spec"] = {"unschedulable": True, "taints": [taint | {"timeAdded": time_added}]}
    node["status"]["conditions"] = ready
    last = pending(make, "p", "p")
    last["metadata"]["creationTimestamp"] = "2026-03-01T10:04:00Z"
    [row] = rows(explained(node, last), "nodes")
    assert (row["why"], row["since_s"]) == expected


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


def test_a_nominated_pod_uses_the_room_that_is_kept_for_it(explained, make):
    """The pods that it has preempted are gone, and its nomination keeps other pods away."""
    nominated = pending(make, "high", "high", cpu="4", priority=2)
    nominated["status"]["nominatedNodeName"] = "a"
    objects = [make.node("a"), nominated, pending(make, "low", "low", priority=1)]
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
    assert answer.findings[1].startswith("1 pod is terminating, and stays so, ")
    crashed = placed(make, "three", "a", ready=False)
    assert (
        explained(node, *two, crashed).verdict == "No pod is pending. 1 pod on a node is not ready."
    )


@pytest.mark.parametrize(
    ("existing", "wanted", "verdict"),
    [
        (1, 2, "The pod has a node and is ready, but 1 more pod is not created."),
        (2, 4, "All 2 pods have a node and are ready, but 2 more pods are not created."),
        (2, 2, "All 2 pods have a node and are ready."),
    ],
)
def test_the_verdict_counts_pods_that_are_not_created(explained, make, existing, wanted, verdict):
    """The StatefulSet db creates its next pod when the last one is ready for long enough."""
    owner, *pods = held_stateful_set(make, ["a"] * existing)
    owner["spec"]["replicas"] = wanted
    for pod in pods:
        del pod["metadata"]["deletionTimestamp"]
    assert explained(make.node("a"), owner, *pods).verdict == verdict


@pytest.mark.parametrize(
    ("names", "start"),
    [
        (["one"], "The pod that is not terminating has a node"),
        (["one", "two"], "All 2 pods that are not terminating have a node"),
    ],
)
def test_the_verdict_says_that_terminating_pods_are_not_counted(explained, make, names, start):
    stuck = placed(make, "stuck", "a")
    stuck["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 30}
    answer = explained(make.node("a"), stuck, *[placed(make, name, "a") for name in names])
    assert answer.verdict.startswith(start)


def test_the_command_prints_all_pods(cluster, tmp_path, capsys):
    """`fairlead explain` with the kind alone, from a file and in the two orders of options."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": cluster}))
    assert run(["explain", str(path), "pods"]) == 0
    printed = capsys.readouterr().out
    assert "3 of 5 pods are pending" in printed
    assert run(["explain", "pods", "--snapshot", str(path)]) == 0
    assert capsys.readouterr().out == printed


def held_stateful_set(make, nodes, **metadata):
    """A StatefulSet whose pods terminate, one on each of `nodes`."""
    owner = make.workload("StatefulSet", "db", replicas=len(nodes))
    owner["metadata"] |= {"uid": "u-db", **metadata}
    owner["spec"]["serviceName"] = "db"
    owner["status"] = {"replicas": len(nodes)}
    pods = [placed(make, f"db-{number}", node) for number, node in enumerate(nodes)]
    for pod in pods:
        reference = pod["metadata"]["ownerReferences"][0]
        reference |= {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-db"}
        deleted = {"deletionTimestamp": "2026-03-01T10:05:00Z", "deletionGracePeriodSeconds": 0}
        pod["metadata"] |= deleted
    return [owner, *pods]


OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def test_a_node_that_is_tainted_out_of_service_is_not_tainted_again(explained, make):
    """Then pod garbage collection deletes the pod; kubectl refuses to add the taint twice."""
    lost = lost_node(make)
    lost["spec"]["taints"].append({"key": OUT_OF_SERVICE, "effect": "NoExecute"})
    answer = explained(lost, *held_stateful_set(make, ["lost"]))
    [row] = rows(answer, "uncreated")
    assert row["why"] == (
        f"waits for the end of default/db-0: lost is tainted {OUT_OF_SERVICE}, so the pod is about "
        "to be deleted"
    )
    assert answer.steps == ()


def test_a_stateful_set_that_is_being_deleted_waits_for_no_pod(explained, make):
    deleted = {"deletionTimestamp": CREATED, "finalizers": ["foregroundDeletion"]}
    answer = explained(lost_node(make), *held_stateful_set(make, ["lost"], **deleted))
    assert rows(answer, "uncreated") == []
    assert answer.steps == ()


def test_a_command_for_many_silent_nodes_names_the_first_ones(explained, make):
    nodes = ["l0", "l1", "l2", "l3"]
    lost = [lost_node(make, name) for name in nodes]
    answer = explained(*lost, *held_stateful_set(make, nodes))
    [row] = rows(answer, "uncreated")
    assert row["why"] == (
        "waits for the end of default/db-0, default/db-1 and 2 more: the kubelets of l0, l1 and 2 "
        "more do not answer"
    )
    [step] = answer.steps
    assert step.words == (
        "if the failed nodes are shut down, have the pods replaced elsewhere (the command taints "
        "3 of 4 nodes); when the kubelets run again, remove the taint"
    )
    assert step.command == f"kubectl taint nodes l0 l1 l2 {OUT_OF_SERVICE}=nodeshutdown:NoExecute"


def test_pods_that_stay_for_different_reasons_have_different_rows(explained, make):
    [owner, first, second] = held_stateful_set(make, ["lost", "a"])
    second["metadata"]["finalizers"] = ["x.example/y"]
    answer = explained(make.node("a"), lost_node(make), owner, first, second)
    assert [(row["pods"], row["why"]) for row in rows(answer, "uncreated")] == [
        (1, "waits for the end of default/db-0: the kubelet of lost does not answer"),
        (1, "waits for the end of default/db-1: finalizers keep it (x.example/y)"),
    ]
