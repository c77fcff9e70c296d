"""Plans begin with the pods that workloads lack, as if the controllers had created them."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.whatif import rollout
from tests.unit.whatif.planner.conftest import daemon_pod, deployment
from tests.unit.whatif.snapshot.test_dumped_objects import deployment as dumped_deployment
from tests.unit.whatif.snapshot.test_dumped_objects import meta, node, pods_of_a_workload, texts_of

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.planner.baseline import read_baseline
from fairlead.whatif.planner.fit import fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.snapshot import parse_snapshot, snapshot_of_texts


@pytest.fixture
def baseline():
    """The baseline of a snapshot with the default configuration."""
    return lambda read: read_baseline(read, SchedulerConfig(), ReleaseChoice(), NoProgress())


def pods_of(base):
    return sorted((pod.pod.metadata.name, pod.pod.spec.node_name) for pod in base.model.pods())


def test_pods_of_manifests_are_created(snapshot, make, baseline):
    """The nodes have eight cores, and the manifests request seven."""
    manifests = [make.node("a"), make.node("b"), make.workload(replicas=6)]
    other = make.workload("Deployment", "api", replicas=1)
    read = snapshot(*manifests, other)
    base = baseline(read)
    note = (
        "7 pods that workloads lack are created first: 1 of deploy/default/api, "
        "6 of deploy/default/web."
    )
    assert note in base.notes
    assert len(base.model.pods()) == 7
    source = pod_source(None, "deploy/api", "", Inventory(base.snapshot.manifests))
    assert fit(base.model, source, NoProgress()).count == 1
    scaled = what_if(read, ClusterChange(scale=("deploy/api=4",)))
    assert len(scaled.changed.pending) == 2


def test_pending_pods_that_get_a_node_meanwhile_are_counted(snapshot, make, baseline):
    """A pod that fits no node is not counted, nor are the created pods."""
    pending = [make.pod("small", owner="rs"), make.pod("large", owner="rs", cpu="9")]
    base = baseline(snapshot(make.node("a"), make.workload(replicas=2), *pending))
    assert "1 pending pod got a node first." in base.notes
    unneeded = baseline(snapshot(make.node("a"), make.workload(replicas=2)))
    assert not any("pending pod" in note for note in unneeded.notes)


def test_pods_that_are_preempted_meanwhile_are_counted(snapshot, make, baseline):
    """The manifest's pod needs the whole node."""
    high = make.workload("ReplicaSet", cpu="4", priorityClassName="high")
    objects = [make.node("a"), make.priority_class("high", 9), *deployment(make, "low", ["a"])]
    base = baseline(snapshot(*objects, high))
    note = "1 pod of lower priority is preempted and finds no other node."
    assert note in base.notes


def test_a_dump_at_rest_is_the_baseline(snapshot, make, baseline):
    """The ReplicaSet of a Deployment does not count beside it, nor do DaemonSets with a pod."""
    daemon = make.workload("DaemonSet", "agent")
    daemon["metadata"]["uid"] = "ds-uid"
    read = snapshot(make.node("a"), *deployment(make, "web", ["a"]), daemon, daemon_pod(make, "a"))
    base = baseline(read)
    assert base.snapshot is read
    assert not any("lack" in note for note in base.notes)


@pytest.mark.parametrize(
    ("owner", "label", "workload"),
    [
        ("", "pod-template-hash", "deploy/default/web"),
        ("Deployment", "pod-template-hash", "deploy/default/web"),
        ("Rollout", "rollouts-pod-template-hash", "rollout/default/web"),
    ],
)
def test_a_replica_set_whose_owner_the_dump_lacks_gets_its_pods(
    snapshot, make, baseline, owner, label, workload
):
    """The pods count for the owner, whose name the label with the template hash shows."""
    _, replica_set, pod = deployment(make, "web", ["a"])
    labels = {"app": "web", label: "1"}
    replica_set["spec"] |= {"replicas": 3}
    replica_set["spec"]["template"]["metadata"] = {"labels": labels}
    pod["metadata"]["labels"] = labels
    [reference] = replica_set["metadata"].pop("ownerReferences")
    if owner:
        replica_set["metadata"]["ownerReferences"] = [{**reference, "kind": owner}]
    base = baseline(snapshot(make.node("a"), replica_set, pod))
    assert base.created == f"2 pods that workloads lack are created first: 2 of {workload}."
    assert len(base.model.pods()) == 3


def test_pods_that_cannot_be_created_do_not_change_the_baseline(snapshot, make, baseline):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
        "status": {"hard": {"pods": "0"}, "used": {"pods": "0"}},
    }
    read = snapshot(make.node("a"), make.workload(replicas=2), quota)
    base = baseline(read)
    assert base.snapshot is read


def test_daemon_sets_without_pods_get_one_on_each_node(snapshot, make, baseline):
    read = snapshot(make.node("a"), make.node("b"), make.workload("DaemonSet", "agent"))
    assert [node for _, node in pods_of(baseline(read))] == ["a", "b"]


def test_a_failed_pod_of_a_daemon_set_is_replaced_first(snapshot, make, baseline):
    """A graceful shutdown of the node ended the pod; the DaemonSet has a pod on another node."""
    daemon = make.workload("DaemonSet", "agent")
    daemon["metadata"]["uid"] = "ds-uid"
    daemon["status"] = {"desiredNumberScheduled": 2}
    running, failed = daemon_pod(make, "a"), daemon_pod(make, "b")
    failed["status"] = {"phase": "Failed", "reason": "NodeShutdown"}
    base = baseline(snapshot(make.node("a"), make.node("b"), daemon, running, failed))
    assert [node for _, node in pods_of(base)] == ["a", "b"]
    assert base.created == "1 pod that workloads lack is created first: 1 of ds/default/agent."


@pytest.mark.parametrize(("more", "count"), [({}, 2), ({"suspend": True}, 0)])
def test_jobs_that_have_not_begun_get_their_pods(snapshot, make, baseline, more, count):
    job = make.workload("Job", "work")
    job["apiVersion"] = "batch/v1"
    job["spec"] = {"parallelism": 2, "completions": 4, "template": job["spec"]["template"], **more}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    base = baseline(snapshot(make.node("a"), job))
    assert len(base.model.pods()) == count


def test_one_missing_pod_is_created_and_the_other_pods_stay(make, baseline):
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a", "b"])]
    objects += deployment(make, "api", ["a", "b"])
    gone = objects.pop()
    for number, one in enumerate(objects):
        one["metadata"].setdefault("uid", f"uid-{number}")
        one["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    text = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
    read = parse_snapshot("dump.json", msgspec.json.encode(text))
    base = baseline(read)
    assert [note for note in base.notes if "lack" in note] == [
        "1 pod that workloads lack is created first: 1 of deploy/default/api."
    ]
    before = {(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in objects
              if pod["kind"] == "Pod"}  # fmt: skip
    after = pods_of(base)
    assert before < set(after)
    assert len(after) == 4
    assert gone["metadata"]["name"] not in dict(after)


def test_a_job_that_fails_before_the_plan_creates_no_more_pods(snapshot, make, baseline):
    """The pod of the Job is evicted by a taint while web's pod is created."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"backoffLimit": 0, "template": template},
    }
    pod = make.pod("train-1", node_name="a", owner="train", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    tainted = make.node("a")
    tainted["spec"] = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}
    base = baseline(snapshot(tainted, make.node("b"), job, pod, make.workload(replicas=1)))
    assert [node for _, node in pods_of(base)] == ["b"]
    [known] = [one for one in base.snapshot.manifests if one.ref.name == "train"]
    assert known.value["status"]["conditions"] == [{"type": "Failed", "status": "True"}]
    after = baseline(base.snapshot)
    assert pods_of(after) == pods_of(base)


def stateful_set(make, nodes, replicas):
    """A StatefulSet that wants `replicas` pods, and its pods, one on each of `nodes`."""
    db = make.workload("StatefulSet", "db", replicas=replicas)
    db["metadata"]["uid"] = "db"
    pods = [make.pod(f"db-{number}", node_name=on, owner="db") for number, on in enumerate(nodes)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    return [db, *pods]


def test_surplus_pods_are_deleted_before_the_plan(snapshot, make, baseline):
    """The StatefulSet was scaled to one replica just before the dump."""
    nodes = [make.node(name) for name in "abc"]
    base = baseline(snapshot(*nodes, *stateful_set(make, "abc", 1)))
    assert pods_of(base) == [("db-0", "a")]
    assert base.created == (
        "2 pods that workloads no longer want are deleted first: 2 of sts/default/db."
    )


def test_a_surplus_pod_that_is_not_deleted_does_not_change_the_baseline(snapshot, make, baseline):
    """The controller deletes pods in order only while all of the others are ready."""
    db, first, second = stateful_set(make, "aa", 1)
    first["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    read = snapshot(make.node("a"), db, first, second)
    assert baseline(read).snapshot is read


def test_pods_that_the_dump_has_as_columns_are_kept(baseline):
    pods = list(pods_of_a_workload())
    nodes = [{**node(), "metadata": meta(one["spec"]["nodeName"])} for one in pods]
    read = snapshot_of_texts("c", texts_of([*pods, *nodes, dumped_deployment()]), {})
    base = baseline(read)
    assert base.created == "1 pod that workloads lack is created first: 1 of deploy/shop/web."
    after = {one.metadata.name for one in (found.pod for found in base.model.pods())}
    assert {one["metadata"]["name"] for one in pods} < after
    assert len(after) == len(pods) + 1


def budget(minimum):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "store"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "expectedPods": 8, "desiredHealthy": minimum},
    }


def test_a_plan_begins_after_a_rollout_but_an_explanation_does_not(snapshot, make, baseline):
    """During the rollout, 8 pods are ready, so the budget refuses evictions."""
    nodes = [make.node(f"n{number}", cpu="8") for number in range(6)]
    read = snapshot(*nodes, *rollout.in_progress(), budget(8))
    base = baseline(read)
    assert base.notes[-1] == (
        "deploy/store/web was being rolled out when the dump was taken; this answer begins after "
        "its rollout."
    )
    web = [pod.pod for pod in base.model.pods() if pod.pod.metadata.name.startswith("web")]
    assert {pod.metadata.labels["pod-template-hash"] for pod in web} == {rollout.NEW}
    assert len(web) == 8
    explained = explain_object(read, "node/n0", SchedulerConfig(), ReleaseChoice())
    assert {row["pod"] for row in explained.tables[0].rows} <= {
        one.ref.key for one in read.manifests
    }
    assert explained.notes[-1] == (
        "This answer is about the time of the dump; more may be possible after the rollout of "
        "deploy/store/web. fairlead drain-plan waits for this."
    )


@pytest.mark.parametrize(("app", "is_noted"), [("web", True), ("api", False)])
def test_an_explanation_of_a_budget_names_only_rollouts_of_its_pods(snapshot, make, app, is_noted):
    """Only web is being rolled out."""
    nodes = [make.node(f"n{number}", cpu="8") for number in range(6)]
    pdb = budget(1)
    pdb["spec"]["selector"]["matchLabels"]["app"] = app
    read = snapshot(*nodes, *rollout.in_progress(), pdb)
    explained = explain_object(read, "pdb/web", SchedulerConfig(), ReleaseChoice())
    assert any("after the rollout of" in note for note in explained.notes) is is_noted


def test_a_plan_waits_for_no_rollout_that_keeps_old_pods(snapshot, make, baseline):
    """The Deployment is paused, so its controller replaces no pods."""
    web, *others = rollout.in_progress()
    web["spec"]["paused"] = True
    others = [one for one in others if one["kind"] != "Pod" or one["status"]["phase"] == "Running"]
    nodes = [make.node(f"n{number}", cpu="8") for number in range(6)]
    read = snapshot(*nodes, web, *others)
    assert baseline(read).snapshot is read


@pytest.mark.parametrize(
    ("scheduled", "waits"),
    [("2026-01-01T00:09:58Z", True), ("2025-12-31T23:09:58Z", False)],
    ids=["starting", "stuck"],
)
def test_a_plan_waits_for_no_rollout_with_a_stuck_pod(snapshot, make, baseline, scheduled, waits):
    """A new pod has not started for an hour, for example because of a volume."""
    nodes = [make.node(f"n{number}", cpu="8") for number in range(6)]
    nodes[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:10:00Z"  # the time of the dump
    objects = rollout.in_progress()
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled}
    for one in objects:
        if one["kind"] == "Pod":
            one["status"]["conditions"].append(bound)
    read = snapshot(*nodes, *objects)
    assert (baseline(read).snapshot is not read) is waits


def test_a_pod_without_a_revision_is_no_sign_of_a_rollout(snapshot, make, baseline):
    """A StatefulSet adopts a pod that has only the labels of its selector."""
    db = make.workload("StatefulSet", "db", replicas=2)
    db["metadata"]["uid"] = "db"
    pods = [make.pod(f"db-{number}", node_name="a", owner="db") for number in range(2)]
    for pod, more in zip(pods, ({}, {"controller-revision-hash": "db-1"}), strict=True):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "db", **more}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    read = snapshot(make.node("a"), db, *pods)
    base = baseline(read)
    assert base.snapshot is read
    assert not any("roll" in note for note in base.notes)


def test_a_rollout_that_does_not_finish_is_named(snapshot, make, baseline):
    """No node has room for a new pod beside the old pods, all of which must be available."""
    web, *others = rollout.in_progress()
    web["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}
    for one in others:
        if one["kind"] == "Pod" and one["status"]["phase"] == "Pending":
            one["status"] = {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False"}],
            }
    nodes = [make.node(f"n{number}", cpu="8") for number in range(6)]
    read = snapshot(*nodes, web, *others)
    base = baseline(read)
    assert base.snapshot is read
    assert base.notes[-1] == (
        "A rollout of deploy/store/web was in progress when the dump was taken, and does not "
        "finish."
    )


@pytest.mark.parametrize(
    ("status", "scheduled", "waits"),
    [
        ({"phase": "Pending"}, "2026-01-01T00:09:58Z", True),
        ({"phase": "Pending"}, "2025-12-31T23:09:58Z", False),
        ({"phase": "Running"}, "2026-01-01T00:09:58Z", False),
    ],
    ids=["starting", "stuck", "running"],
)
def test_a_plan_waits_for_pods_that_are_starting(
    snapshot, make, baseline, status, scheduled, waits
):
    """A pod that has not started for an hour is not ready when the plan begins."""
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a", "b"])]
    objects[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:10:00Z"  # the time of the dump
    pod = objects[-1]
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled}
    pod["status"] = status | {"conditions": [bound, {"type": "Ready", "status": "False"}]}
    read = snapshot(*objects)
    base = baseline(read)
    assert (base.snapshot is not read) is waits
    key = f"default/{pod['metadata']['name']}"
    note = f"1 pod was starting when the dump was taken ({key}); this answer begins afterwards."
    assert (note in base.notes) is waits


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        ({"type": "RollingUpdate"}, True),
        ({"type": "OnDelete"}, False),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}, False),
    ],
    ids=["rolling", "on delete", "partition"],
)
def test_pods_of_several_revisions_can_be_permanent(snapshot, make, baseline, strategy, waits):
    """db-0 has the old revision, and a partition of 1 keeps it."""
    db = make.workload("StatefulSet", "db", replicas=2)
    db["metadata"]["uid"] = "db"
    db["spec"]["updateStrategy"] = strategy
    pods = [make.pod(f"db-{number}", node_name="a", owner="db") for number in range(2)]
    for number, pod in enumerate(pods):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "db", "controller-revision-hash": f"db-{number}"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    base = baseline(snapshot(make.node("a"), db, *pods))
    assert any("roll" in note for note in base.notes) is waits


@pytest.mark.parametrize(
    ("tolerates", "is_due"),
    [({"tolerationSeconds": 300}, True), ({}, False)],
    ids=["for five minutes", "for ever"],
)
def test_pods_that_a_failed_node_loses_later_are_named(snapshot, make, baseline, tolerates, is_due):
    """A what-if waits for their replacements, and budgets count them until then."""
    failed = make.node("a")
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    failed["spec"] = {"taints": [taint]}
    failed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    toleration = {**taint, "operator": "Exists", **tolerates}
    web = deployment(make, "web", ["a"], tolerations=[toleration])
    base = baseline(snapshot(failed, make.node("b"), *web, *deployment(make, "api", ["b"])))
    note = (
        "1 pod of nodes out of service (a) is evicted later; fairlead whatif waits until it has "
        "moved, but this answer does not."
    )
    assert (note in base.notes) is is_due
