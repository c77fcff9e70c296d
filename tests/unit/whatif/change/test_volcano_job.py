"""An applied Job of Volcano creates a PodGroup, and Jobs whose pods are the members."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.volcano_job import gang_of
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.manifest_reader import manifests


def task(name, replicas, cpu="1", **fields):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def volcano_job(*tasks, name="train", **spec):
    meta = {"name": name, "namespace": "default"}
    body = {"tasks": list(tasks), **spec}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": meta,
        "spec": body,
    }


def gang(value):
    (one,) = manifests([Document("job.yaml", value)])
    return [part.value for part in gang_of(one, one.ref.name)]


def test_the_group_and_the_templates_have_the_fields_of_the_job():
    job = volcano_job(
        task("worker", 4, minAvailable=3),
        task("launcher", 1),
        minAvailable=4,
        queue="prod",
        priorityClassName="high",
    )
    group, workers, launcher = gang(job)
    assert group["spec"] == {
        "minMember": 4,
        "queue": "prod",
        "priorityClassName": "high",
        "minTaskMember": {"worker": 3},
    }
    names = [one["metadata"]["name"] for one in (group, workers, launcher)]
    assert names == ["train", "train-worker", "train-launcher"]
    assert (workers["spec"]["parallelism"], workers["spec"]["completions"]) == (4, 4)
    template = workers["spec"]["template"]
    assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "train"
    pod = template["spec"]
    assert (pod["schedulerName"], pod["priorityClassName"]) == ("volcano", "high")
    assert pod["restartPolicy"] == "OnFailure"


def test_all_pods_are_needed_by_default():
    group, *_ = gang(volcano_job(task("a", 2), task("b", 3)))
    assert group["spec"] == {"minMember": 5, "queue": "default"}


def test_the_default_minimum_is_the_sum_of_the_minima_of_the_tasks():
    group, *_ = gang(volcano_job(task("a", 4, minAvailable=2), task("b", 3)))
    assert group["spec"]["minMember"] == 5


def test_tasks_without_names_are_named_after_their_index():
    unnamed = [{key: value for key, value in task("", 1).items() if key != "name"}] * 2
    _, *jobs = gang(volcano_job(*unnamed))
    assert [one["metadata"]["name"] for one in jobs] == ["train-default0", "train-default1"]


def test_the_scheduler_name_of_a_pod_takes_precedence_over_that_of_its_job():
    own = task("a", 1)
    own["template"]["spec"]["schedulerName"] = "own"
    _, first, second = gang(volcano_job(own, task("b", 1), schedulerName="batch"))
    specs = [one["spec"]["template"]["spec"] for one in (first, second)]
    assert [spec["schedulerName"] for spec in specs] == ["own", "batch"]


def test_a_task_has_no_pods_by_default():
    unnumbered = {key: value for key, value in task("b", 0).items() if key != "replicas"}
    *_, second = gang(volcano_job(task("a", 2), unnumbered))
    assert second["spec"]["completions"] == 0


def test_null_in_the_tasks_of_an_applied_job_is_an_error(snapshot, make):
    applied = volcano_job(task("a", 1), None)
    with pytest.raises(InputError, match=r"spec\.tasks\[1\]: expected a value, got null"):
        what_if(snapshot(make.node("a")), ClusterChange(apply=(applied,)))


def test_other_objects_have_no_gang():
    assert gang(volcano_job(task("a", 1)) | {"apiVersion": "example.com/v1"}) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (volcano_job(), "spec.tasks: expected array of length >= 1"),
        (volcano_job(task("a", "many")), "spec.tasks[0].replicas: expected int, got str"),
        (volcano_job(task("a", -1)), "spec.tasks[0].replicas: expected int >= 0"),
        (
            volcano_job(task("a", 1) | {"template": {"spec": "abc"}}),
            "spec.tasks[0].template.spec: expected object, got str",
        ),
        (
            volcano_job(
                task("a", 1) | {"template": {"spec": {}, "metadata": {"annotations": [1]}}}
            ),
            "spec.tasks[0].template.metadata.annotations: expected object, got array",
        ),
        (volcano_job(task("a", 1), task("a", 1)), "spec.tasks[1].name: 'a' appears twice"),
        (
            volcano_job(task("a", 1, minAvailable=2)),
            "spec.tasks[0].minAvailable: 2 is more than the 1 replicas of the task",
        ),
        (
            volcano_job(task("a", 2), minAvailable=3),
            "spec.minAvailable: 3 is more than the 2 replicas of all tasks",
        ),
    ],
)
def test_jobs_that_volcano_refuses_are_errors(value, problem):
    with pytest.raises(InputError) as caught:
        gang(value)
    assert str(caught.value) == f"job.yaml: Job.batch.volcano.sh default/train: {problem}"


def test_an_object_with_the_name_of_a_part_of_the_gang_is_an_error(snapshot, make):
    meta = {"name": "train", "namespace": "default"}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 1},
    }
    job = volcano_job(task("a", 1))
    cases = [(snapshot(make.node("a"), group), (job,)), (snapshot(make.node("a")), (group, job))]
    for cluster, applied in cases:
        with pytest.raises(InputError, match="PodGroup default/train: exists already"):
            what_if(cluster, ClusterChange(apply=applied))


@pytest.mark.parametrize(("replicas", "placed"), [(3, 4), (4, 0)])
def test_the_pods_of_an_applied_job_start_together(snapshot, make, write, replicas, placed):
    cluster = snapshot(make.node("a", cpu="4"))
    path = write("job.json", volcano_job(task("w", replicas), task("l", 1)))
    changed = what_if(cluster, ClusterChange(apply=(path,))).changed
    assert len(list(changed.placed)) == placed
    assert changed.notes[0] == (
        "Volcano's controller is not simulated. For Job default/train (batch.volcano.sh), a "
        "PodGroup and a Job of Kubernetes for each task are created. Its pods have other names. "
        "Policies, plugins, volumes, dependsOn and the minAvailable of single tasks have no effect."
    )
    assert not any("No pods are created" in one for one in changed.notes)


def test_a_task_with_host_network_has_the_dns_policy_of_volcanos_webhook(snapshot, make, write):
    def job(replicas, **pod):
        one = task("w", replicas)
        one["template"]["spec"] |= {"hostNetwork": True, **pod}
        return volcano_job(one)

    cluster = snapshot(make.node("a"), job(1, dnsPolicy="ClusterFirstWithHostNet"))
    path = write("job.json", job(2))
    what_if(cluster, ClusterChange(apply=(path,)))
    path = write("job.json", job(2, dnsPolicy="ClusterFirst"))
    with pytest.raises(InputError, match="may not change fields other than"):
        what_if(cluster, ClusterChange(apply=(path,)))
