"""Explanations of Volcano Jobs and JobSets: why their groups and pods wait."""

from __future__ import annotations

import json

import pytest

from fairlead.cli import main
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object, group_of_owner

SCHEDULING = "scheduling.volcano.sh/v1beta1"


def reference(api, kind, name):
    return {"apiVersion": api, "kind": kind, "name": name, "uid": name, "controller": True}


OWNER = reference("batch.volcano.sh/v1alpha1", "Job", "train")


def custom(api, kind, name, owner=None, **spec):
    meta = {"name": name, "namespace": "default", "uid": name}
    meta |= {"ownerReferences": [owner]} if owner else {}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}


def volcano_job(replicas=2):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    tasks = [{"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}]
    return custom("batch.volcano.sh/v1alpha1", "Job", "train", minAvailable=replicas, tasks=tasks)


def pod_group(phase="Inqueue"):
    group = custom(SCHEDULING, "PodGroup", "train-x", OWNER, minMember=2, queue="default")
    return group | {"status": {"phase": phase}}


@pytest.fixture
def scene(make):
    queue = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": "default"}}
    return [make.node("a", cpu="3"), queue, volcano_job(), pod_group()]


def members(make):
    pods = []
    for number in range(2):
        pod = make.pod(f"train-w-{number}", cpu="2", schedulerName="volcano")
        pod["metadata"]["ownerReferences"] = [OWNER]
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "train-x"}
        pods.append(pod)
    return pods


def explained(cluster, target):
    return explain_object(cluster, target, SchedulerConfig(), NO_CHOICE)


def test_a_volcano_job_says_why_its_group_waits(snapshot, make, scene):
    answer = explained(snapshot(*scene, *members(make)), "vcjob/train")
    assert answer.verdict.startswith("0 of 2 wanted pods of job.batch.volcano.sh/default/train are")
    needs, blocked, remedy = answer.findings[:3]
    assert needs == (
        "Its group default/train-x needs 2 of its 2 members, 0 are on nodes, nodes have room for "
        "1 more."
    )
    assert blocked.startswith("Blocked: no node can take the next member (default/train-w-")
    assert blocked.endswith("Insufficient cpu).")
    assert remedy.startswith(
        "What would let it start: room for 1 more member like default/train-w-"
    )
    [group] = answer.facts["groups"]
    assert (group["group"], group["obstacle"]) == ("default/train-x", "NO_NODE")


def test_a_workload_of_kube_scheduler_has_no_groups(snapshot, make):
    cluster = snapshot(make.node("a"), make.workload(replicas=1), make.pod("web-1", owner="web"))
    assert "groups" not in explained(cluster, "deploy/web").facts


def test_a_volcano_job_without_pods_means_its_group(snapshot, make, scene):
    cluster = snapshot(*scene)
    assert group_of_owner("vcjob/train", cluster) == "podgroup/default/train-x"
    assert group_of_owner("vcjob/train", snapshot(*scene[:3])) == "vcjob/train"
    assert group_of_owner("vcjob/train", snapshot(*scene, *members(make))) == "vcjob/train"
    assert group_of_owner("pods", cluster) == "pods"


@pytest.mark.parametrize("target", ["vcjob/train", "vcjob/default/train", ""])
def test_a_volcano_job_of_a_file_means_its_group(tmp_path, capsys, make, target):
    dump, file = tmp_path / "dump.json", tmp_path / "job.json"
    items = {"apiVersion": "v1", "kind": "List", "items": [make.node("a", cpu="3")]}
    dump.write_text(json.dumps(items))
    file.write_text(json.dumps(volcano_job(4)))
    words = [target] if target else []
    main.run(["explain", "--snapshot", str(dump), *words, "--apply", str(file), "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["group"]) == ("GroupExplanation", "default/train")
    assert (answer["min_member"], answer["members"]) == (4, 4)


def job_set_with_jobs(make):
    """Return a JobSet, its two Jobs of two pods each, and three of these pods."""
    owner = reference("jobset.x-k8s.io/v1alpha2", "JobSet", "sim")
    template = make.workload()["spec"]["template"]
    found = [custom("jobset.x-k8s.io/v1alpha2", "JobSet", "sim")]
    for name, pods in (("sim-a-0", 2), ("sim-b-0", 1)):
        job = custom("batch/v1", "Job", name, owner, parallelism=2, completions=2)
        job["spec"]["template"] = template
        found.append(job | {"status": {"active": pods}})
        for number in range(pods):
            pod = make.pod(f"{name}-{number}", cpu="2")
            pod["metadata"]["ownerReferences"] = [reference("batch/v1", "Job", name)]
            found.append(pod)
    return found


def test_a_job_set_is_explained_with_the_pods_of_its_jobs(snapshot, make):
    cluster = snapshot(make.node("a", cpu="1"), *job_set_with_jobs(make))
    answer = explained(cluster, "jobset/sim")
    assert answer.verdict == (
        "0 of 4 wanted pods of jobset/default/sim are ready: 3 pending, 1 not created."
    )
    tables = {one.name: one.rows for one in answer.tables}
    assert [(row["job"], row["wanted"], row["pending"]) for row in tables["jobs"]] == [
        ("default/sim-a-0", 2, 2),
        ("default/sim-b-0", 2, 1),
    ]
    assert [row["pods"] for row in tables["pending"]] == [3]
    lacks = "1 of its Jobs lacks 1 pod: its controller has not created them (job/default/sim-b-0)."
    assert lacks in answer.findings


def test_jobs_lack_no_pods_that_were_created_for_the_answer(snapshot, make):
    """The status of the second Job is older than its second pod."""
    late = make.pod("sim-b-0-1", cpu="2")
    late["metadata"]["ownerReferences"] = [reference("batch/v1", "Job", "sim-b-0")]
    cluster = snapshot(make.node("a", cpu="1"), *job_set_with_jobs(make), late)
    answer = explained(cluster, "jobset/sim")
    assert answer.verdict == "0 of 4 wanted pods of jobset/default/sim are ready: 4 pending."
    assert not any("of its Jobs" in sentence for sentence in answer.findings)
