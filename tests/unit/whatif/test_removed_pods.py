"""What-ifs that end, replace or resize pods of a running cluster have a difference."""

from __future__ import annotations

import pytest

from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.engine.configuration.release import release_of
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.release import Releases
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.dump_note import IGNORED_MAX_UNAVAILABLE

TRACKING = "batch.kubernetes.io/job-tracking"


def job(**spec):
    labels = {"batch.kubernetes.io/controller-uid": "job-1", "batch.kubernetes.io/job-name": "j"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "job-1"},
        "spec": {
            "parallelism": 3,
            "completions": 3,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "job-1"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
            **spec,
        },
        "status": {"active": 3, "ready": 3},
    }


@pytest.fixture
def running_job(make):
    """A Job with three running pods, as a real server stores them."""
    pods = [make.pod(f"j-{n}", node_name="a", restartPolicy="Never") for n in range(3)]
    for one in pods:
        one["metadata"] |= {
            "finalizers": [TRACKING],
            "labels": job()["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-1",
                 "controller": True, "blockOwnerDeletion": True}
            ],
        }  # fmt: skip
    return [make.node("a"), job(), *pods]


@pytest.mark.parametrize(
    ("change", "removed"),
    [
        pytest.param({"delete": ("job/j",)}, 3, id="the Job is deleted"),
        pytest.param({"apply": [job(suspend=True)]}, 3, id="the Job is suspended"),
        pytest.param({"apply": [job(parallelism=1)]}, 2, id="its parallelism is lowered"),
    ],
)
def test_pods_that_wait_for_job_tracking_are_removed(running_job, snapshot, write, change, removed):
    if "apply" in change:
        change = {"apply": (write("change.json", *change["apply"]),)}
    found = what_if(snapshot(*running_job), ClusterChange(**change)).difference
    assert len(found.removed) == removed
    assert found.reallocated == ("cpu", "pods")


def exit_code_rule(action, *values):
    return {"action": action, "onExitCodes": {"operator": "In", "values": list(values)}}


@pytest.mark.parametrize(
    ("rule", "stop", "code"),
    [
        pytest.param(exit_code_rule("FailJob", 137), "", 137, id="SIGKILL"),
        pytest.param(exit_code_rule("FailJob", 143), "5s", 143, id="SIGTERM"),
        pytest.param(exit_code_rule("FailJob", 42), "", None, id="another exit code"),
        pytest.param(exit_code_rule("Ignore", 137), "", None, id="the exit code is ignored"),
    ],
)
def test_a_drain_fails_a_job_whose_policy_names_the_exit_code(
    running_job, make, snapshot, rule, stop, code
):
    running_job[1] = job(podFailurePolicy={"rules": [rule]})
    for one in running_job[2:]:
        one["metadata"]["annotations"] = {"fairlead.dev/stop-duration": stop} if stop else {}
    errors = what_if(
        snapshot(*running_job, make.node("b")), ClusterChange(drain=("a",))
    ).effect.errors
    why = f"failed with exit code {code} matching FailJob rule at index 0"
    assert [why in one.message for one in errors] == ([True] if code else [])


def test_the_pods_that_a_job_creates_again_show_their_exit_codes_too(running_job, make, snapshot):
    """Only the first pods stop within their grace period."""
    running_job[1] = job(podFailurePolicy={"rules": [exit_code_rule("FailJob", 137)]})
    for one in running_job[2:]:
        one["metadata"]["annotations"] = {"fairlead.dev/stop-duration": "5s"}
    change = ClusterChange(drain=("a", "b"), max_unavailable=1, lasts="1m")
    errors = what_if(snapshot(*running_job, make.node("b")), change).effect.errors
    assert ["failed with exit code 137" in one.message for one in errors] == [True]


def test_a_deleted_pod_of_a_job_has_not_completed(running_job, make, snapshot):
    """Its status is Failed before it is gone."""
    policy = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    running_job[1] = job(podFailurePolicy=policy)
    running_job[2]["spec"]["nodeName"] = "b"
    answer = what_if(snapshot(*running_job, make.node("b")), ClusterChange(drain=("b",)))
    assert [len(answer.difference.removed), len(answer.difference.completed)] == [2, 0]


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_job_whose_deadline_passes_in_the_meantime_is_no_effect(
    running_job, make, snapshot, node
):
    """Without the change, nothing happens for six minutes, but the Job fails after ten."""
    running_job[1] = job(activeDeadlineSeconds=600)
    running = snapshot(*running_job, make.node("b"), make.pod("p", node_name="b"))
    failures = Failures(fail_node=(node,))
    answer = what_if(running, ClusterChange(failures=failures, lasts="20m"))
    ended = (*answer.difference.removed, *answer.difference.gone)
    assert {pod.name for pod in ended} == ({"p"} if node == "b" else set())
    assert not answer.effect.errors
    assert {one.pod for one in answer.effect.lost} <= {"default/p"}


def test_pods_that_end_after_the_last_change_run_in_both_answers(make, snapshot):
    """Both simulations are at rest when the pods would end by themselves."""
    pods = make.pod("p", node_name="a"), make.pod("q", cpu="2")
    for pod in pods:
        pod["metadata"]["annotations"] = {RUN_DURATION: "10m"}
    running = snapshot(make.node("a"), make.node("b", cpu="1"), *pods)
    answer = what_if(running, ClusterChange(cordon=("b",)))
    assert not answer.difference.removed
    assert not answer.difference.reallocated


def test_a_pod_that_a_finalizer_of_another_controller_holds_is_removed(make, snapshot):
    held = make.pod("held", node_name="a")
    held["metadata"]["finalizers"] = ["example.com/backup"]
    answer = what_if(snapshot(make.node("a"), held), ClusterChange(delete=("pod/held",)))
    assert [pod.key for pod in answer.difference.removed] == ["default/held"]


@pytest.mark.parametrize(
    ("spec", "reallocated"), [({"cpu": "2"}, ("cpu",)), ({"nodeName": "a"}, ())]
)
def test_a_new_template_of_a_stateful_set_is_a_difference(make, snapshot, write, spec, reallocated):
    owner = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-1",
         "controller": True}
    ]  # fmt: skip
    workload = make.workload("StatefulSet", "db")
    workload["metadata"]["uid"] = "db-1"
    pod = make.pod("db-0", node_name="a")
    pod["metadata"] |= {"labels": {"app": "db"}, "ownerReferences": owner}
    newer = write("change.json", make.workload("StatefulSet", "db", **spec))
    running = snapshot(make.node("a"), workload, pod)
    found = what_if(running, ClusterChange(apply=(newer,))).difference
    assert [one.pod.key for one in found.updated] == ["default/db-0"]
    assert found.reallocated == reallocated
    assert not found.is_empty


@pytest.mark.parametrize(("is_on", "gone"), [(True, {"db-1", "db-2"}), (False, {"db-2"})])
def test_max_unavailable_of_a_stateful_set_needs_its_feature_gate(
    make, snapshot, write, is_on, gone
):
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
    workload = make.workload("StatefulSet", "db", replicas=3)
    workload["metadata"]["uid"] = "db-1"
    workload["spec"] |= rolling
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-1"}
    pods = [make.pod(f"db-{number}", node_name="a") for number in range(3)]
    for one in pods:
        owners = [{**owner, "controller": True}]
        one["metadata"] |= {"labels": {"app": "db"}, "ownerReferences": owners}
    newer = make.workload("StatefulSet", "db", replicas=3, cpu="64")
    newer["spec"] |= rolling
    change = ClusterChange(apply=(write("change.json", newer),))
    release = release_of(gates={"MaxUnavailableStatefulSet": is_on})
    conditions = Conditions(releases=Releases(release, release))
    outcome = what_if(snapshot(make.node("a"), workload, *pods), change, conditions).changed
    assert {f"db-{n}" for n in range(3)} - {pod.name for pod in outcome.placed} == gone
    assert (IGNORED_MAX_UNAVAILABLE in outcome.notes) is not is_on


def test_max_unavailable_is_not_noted_without_a_rolling_update(make, snapshot):
    workload = make.workload("StatefulSet", "db", replicas=1)
    workload["metadata"] |= {"uid": "db-1", "generation": 3}
    workload["spec"]["updateStrategy"] = {"rollingUpdate": {"maxUnavailable": 2}}
    workload["status"] = {"currentRevision": "db-7", "updateRevision": "db-7", "replicas": 1}
    change = ClusterChange(cordon=("a",))
    for status, is_noted in ({}, False), ({"updateRevision": "db-8"}, True):
        workload["status"] |= status
        outcome = what_if(snapshot(make.node("a"), workload), change).changed
        assert (IGNORED_MAX_UNAVAILABLE in outcome.notes) is is_noted


def test_max_unavailable_is_not_noted_for_a_new_stateful_set(make, snapshot, write):
    workload = make.workload("StatefulSet", "db", replicas=1)
    workload["spec"]["updateStrategy"] = {"rollingUpdate": {"maxUnavailable": 2}}
    change = ClusterChange(apply=(write("new.json", workload),))
    outcome = what_if(snapshot(make.node("a")), change).changed
    assert len(outcome.placed) == 1
    assert IGNORED_MAX_UNAVAILABLE not in outcome.notes


def test_a_deleted_pod_that_a_quota_refuses_to_create_again_is_counted_once(
    snapshot, make, running_job
):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "2"}},
    }
    found = what_if(snapshot(quota, *running_job), ClusterChange(delete=("pod/j-0",)), Conditions())
    (one,) = found.effect.workloads
    assert (one.not_created, one.missing, one.removed) == (1, 0, 0)
    assert [each.kind for each in found.verdict.findings] == ["error", "not_created"]
