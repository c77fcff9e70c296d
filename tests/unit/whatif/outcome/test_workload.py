"""The workload of a pod, and answers about pods of an Argo Rollout."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.apiserver.registry.store import Store
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef, revision_of, workload_of
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.run.capacity.wanted_pods import desired_pods, wanted_pods
from fairlead.worlds.seeded_ids import SeededIds

HASH = "rollouts-pod-template-hash"


@pytest.mark.parametrize(
    ("owner", "labels", "workload"),
    [
        ("web-6d4cf56db6", {"pod-template-hash": "6d4cf56db6"}, "deploy/default/web"),
        ("web-6d4cf56db6", {HASH: "6d4cf56db6"}, "rollout/default/web"),
        ("web-6d4cf56db6", {HASH: "6d4cf56db6", "pod-template-hash": "1"}, "rollout/default/web"),
        ("web", {HASH: "6d4cf56db6"}, "rs/default/web"),
        ("web", {}, "rs/default/web"),
    ],
    ids=["Deployment", "Rollout", "two hashes", "another hash", "no hash"],
)
def test_the_workload_is_the_owner_of_the_replica_set(make, owner, labels, workload):
    pod = make.pod(owner=owner)
    pod["metadata"]["labels"] = labels
    assert str(workload_of(decode_as(Pod, pod))) == workload


@pytest.mark.parametrize(
    ("job", "workload"),
    [
        ("backup-29384720", "cronjob/default/backup"),
        ("train-20261118", "job/default/train-20261118"),
        ("train-1763424000", "job/default/train-1763424000"),
    ],
    ids=["minutes", "a date", "seconds"],
)
def test_a_job_with_a_scheduled_time_in_its_name_belongs_to_a_cron_job(make, job, workload):
    pod = make.pod(owner=job)
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    assert str(workload_of(decode_as(Pod, pod))) == workload


@pytest.mark.parametrize(
    ("api", "workload"),
    [
        ("batch/v1", "job/default/x"),
        ("batch.volcano.sh/v1alpha1", "job.batch.volcano.sh/default/x"),
        ("", "job/default/x"),
    ],
)
def test_a_custom_resource_named_like_a_built_in_kind_has_its_group(make, api, workload):
    pod = make.pod(owner="x")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": "Job"}
    found = workload_of(decode_as(Pod, pod))
    assert (str(found), found.is_permanent) == (workload, False)


def created_by(make, kind, name, uid, number):
    """A pod that a program created, with the Pod or Deployment of the program as the controller."""
    pod = make.pod(f"{name}-exec-{number}", node_name="n", owner=name)
    api = "v1" if kind == "Pod" else "apps/v1"
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": kind, "uid": uid}
    return pod


@pytest.mark.parametrize(("kind", "short"), [("Pod", "pod"), ("Deployment", "deploy")])
def test_the_pods_of_a_program_are_a_workload_of_their_own(make, kind, short):
    """The executors of Spark are no pods without a controller, and Flink's are no replicas."""
    workload = workload_of(decode_as(Pod, created_by(make, kind, "etl", "u", 1)))
    assert str(workload) == f"the program in {short}/default/etl"
    assert workload != WorkloadRef(kind, "default", "etl")
    assert workload.is_permanent is (kind == "Deployment")


def test_the_result_has_the_kind_and_name_of_the_object_in_which_a_program_runs(snapshot, make):
    driver = make.pod("etl", node_name="m")
    driver["metadata"]["uid"] = "u"
    executor = created_by(make, "Pod", "etl", "u", 1)
    cluster = snapshot(make.node("n"), make.node("m"), driver, executor)
    [row] = whatif_result(what_if(cluster, ClusterChange(drain=("n",))))["workloads"]
    assert row["workload"] == "the program in pod/default/etl"
    assert (row["kind"], row["namespace"], row["name"]) == ("Pod", "default", "etl")


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_the_pods_of_a_program_are_deleted_with_it(snapshot, make, kind):
    owner = make.pod("etl", node_name="n") if kind == "Pod" else make.workload(name="etl")
    owner["metadata"]["uid"] = "u"
    pods = [created_by(make, kind, "etl", "u", number) for number in range(2)]
    answer = what_if(snapshot(make.node("n"), owner, *pods), ClusterChange(delete=(f"{kind}/etl",)))
    assert answer.changed.settled
    assert not answer.changed.pods


def test_a_program_that_runs_again_creates_its_pods_again(snapshot, make):
    owner = make.pod("etl-0", node_name="n", owner="etl")
    owner["metadata"]["uid"] = "u"
    pods = [created_by(make, "Pod", "etl-0", "u", number) for number in range(2)]
    workload = make.workload("ReplicaSet", "etl")
    workload["metadata"]["uid"] = "etl"
    cluster = snapshot(make.node("n"), make.node("m"), workload, owner, *pods)
    answer = what_if(cluster, ClusterChange(drain=("n",)))
    assert len(answer.changed.pods) == 3


def test_a_deployment_is_explained_without_the_pods_that_its_program_created(snapshot, make):
    deployment = make.workload(name="etl")
    deployment["metadata"]["uid"] = "u"
    cluster = snapshot(make.node("n"), deployment, created_by(make, "Deployment", "etl", "u", 1))
    answer = explain_object(cluster, "deploy/etl", SchedulerConfig(), NO_CHOICE)
    assert answer.verdict.startswith("0 of 1 wanted pod of deploy/default/etl is ready")


@pytest.mark.parametrize("api", ["apps/v1", "apps.kruise.io/v1alpha1"])
def test_the_pods_of_every_daemon_set_belong_to_their_nodes(snapshot, make, api):
    pod = make.pod("agent", node_name="a", owner="agent")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": "DaemonSet"}
    answer = what_if(snapshot(make.node("a"), make.node("b"), pod), ClusterChange(delete=("no/a",)))
    assert [one.belongs_to_node for one in answer.effect.workloads] == [True]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *[(kind, False) for kind in ("Pod", "Job", "CronJob", "PyTorchJob", "MPIJob", "TaskRun")],
        *[(kind, True) for kind in ("Deployment", "StatefulSet", "RayCluster", "Kafka")],
    ],
)
def test_jobs_of_operators_are_not_permanent(kind, expected):
    assert WorkloadRef(kind, "ml", "x").is_permanent is expected


def test_the_pods_of_a_rollout_have_revisions(make):
    pod = make.pod(owner="web-1")
    pod["metadata"]["labels"] = {HASH: "1"}
    assert revision_of(decode_as(Pod, pod)) == "1"


ABOVE = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def rollout(make, *nodes, stable=2, canary=1):
    """A Rollout with a stable and a canary ReplicaSet, whose pods are on `nodes`."""
    above = {**ABOVE, "name": "web", "uid": "u"}
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    objects = [{**above, "metadata": meta, "spec": {"replicas": stable + canary}}]
    places = iter(nodes)
    for digest, replicas in (("1", stable), ("2", canary)):
        labels = {"app": "web", HASH: digest}
        owned = make.workload("ReplicaSet", f"web-{digest}", replicas=replicas)
        owned["spec"]["selector"] = {"matchLabels": labels}
        owned["spec"]["template"]["metadata"]["labels"] = labels
        owned["metadata"] |= {
            "uid": f"web-{digest}",
            "ownerReferences": [{**above, "controller": True}],
        }
        objects.append(owned)
        for number in range(replicas):
            pod = make.pod(f"web-{digest}-{number}", owner=f"web-{digest}", node_name=next(places))
            pod["metadata"]["labels"] = labels
            objects.append(pod)
    return objects


def test_an_answer_groups_all_replica_sets_of_a_rollout(make, snapshot):
    """One of three pods has no room elsewhere; the Rollout still wants three."""
    nodes = [make.node("a", cpu="2"), make.node("b", cpu="2")]
    dump = snapshot(*nodes, *rollout(make, "a", "b", "a"))
    outcome = what_if(dump, ClusterChange(drain=("a",))).changed
    [found] = outcome.workloads.items()
    assert str(found[0]) == "rollout/default/web"
    assert (found[1].wanted, len(outcome.pending)) == (3, 1)


def test_the_pods_of_many_rollouts_are_counted_in_one_pass(make, monkeypatch):
    store = Store(SeededIds(0))
    for number in range(6):
        owned = make.workload("ReplicaSet", f"web-{number}", replicas=number)
        owner = {**ABOVE, "name": f"web-{number // 2}", "uid": "u", "controller": True}
        owned["metadata"]["ownerReferences"] = [owner]
        store.create(owned, 0)
    lists = []
    listed = store.list
    monkeypatch.setattr(store, "list", lambda *given: lists.append(given) or listed(*given))
    refs = [WorkloadRef("Rollout", "default", f"web-{number}") for number in range(4)]
    found = wanted_pods(store, [], refs)
    assert [found[ref] for ref in refs] == [1, 5, 9, 0]
    assert len(lists) == 1
    assert [desired_pods(store, ref) for ref in refs] == [1, 5, 9, None]


def test_an_explanation_names_the_replica_set_of_a_rollout_in_progress(make, snapshot):
    dump = snapshot(make.node("a"), *rollout(make, "a", "a", "a"))
    with pytest.raises(InputError, match="a Rollout cannot be explained; name its ReplicaSet defa"):
        explain_object(dump, "rollout/default/web", SchedulerConfig(), NO_CHOICE)


def test_the_only_replica_set_with_replicas_explains_its_rollout(make, snapshot):
    dump = snapshot(make.node("a"), *rollout(make, "a", "a", canary=0))
    found = explain_object(dump, "rollout/default/web", SchedulerConfig(), NO_CHOICE)
    assert "rs/default/web-1" in found.verdict
