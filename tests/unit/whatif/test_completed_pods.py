"""An answer lists the new pods that run and complete before its end."""

from __future__ import annotations

from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result


def template(run_duration="5m", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"annotations": {RUN_DURATION: run_duration}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def job(name="j", **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template(), **spec},
    }


def pod(name, **spec):
    made = template(**spec)
    meta = {**made["metadata"], "name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made["spec"]}


def test_the_pods_of_a_new_job_run_and_complete(make, snapshot, write):
    applied = (write("job.json", job(completions=3, parallelism=2)),)
    answer = what_if(snapshot(make.node("a", "2")), ClusterChange(apply=applied))
    kind, sentence = answer.verdict.first.kind, answer.verdict.first.sentence
    assert kind is OutcomeKind.COMPLETED
    assert sentence == "3 pods of job/default/j run and complete; the last one after 10m02s."
    (row,) = answer.effect.workloads
    assert row.short_words == "3 new, 3 completed"
    assert (row.readiness.wanted, row.readiness.at_end, row.is_harmed) == (0, 0, False)
    assert answer.effect.untouched_workloads == 0
    result = whatif_result(answer)
    assert result["difference"]
    assert sorted(one["at_s"] for one in result["completed"]) == [301, 301, 602]
    assert {one["phase"] for one in result["completed"]} == {"Succeeded"}


def test_a_pod_that_waits_runs_and_completes_has_waited(make, snapshot, write):
    """The node has room for one pod, which runs for five minutes."""
    applied = (write("job.json", job(completions=2, parallelism=2)),)
    answer = what_if(snapshot(make.node("a", "1")), ClusterChange(apply=applied))
    result = whatif_result(answer)
    (waited,) = result["waited"]
    assert waited["node"] == "a"
    assert "Insufficient cpu" in waited["reason"]
    assert waited["waited_s"] >= 300
    assert result["recovered_after_s"] >= 300


def test_pods_that_complete_without_the_change_too_are_not_listed(make, snapshot):
    """The Job of the dump waits for the room of one pod, and gets it in both runs."""
    cluster = snapshot(make.node("a"), make.node("b"), job(completions=2))
    answer = what_if(cluster, ClusterChange(cordon=("a",)))
    assert answer.difference.completed == ()


def test_a_new_pod_that_fails_is_an_error(make, snapshot, write):
    applied = (write("pod.json", pod("p", activeDeadlineSeconds=60)),)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=applied))
    assert answer.verdict.first.kind is OutcomeKind.ERROR
    assert answer.verdict.first.sentence.startswith("pod/default/p runs and fails after 1m")
    (row,) = answer.effect.workloads
    assert row.short_words == "1 new, 1 failed"
    assert row.is_harmed


def test_a_failed_job_and_its_pods_are_not_untouched(make, snapshot, write):
    made = job(backoffLimit=0)
    made["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 60
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(write("job.json", made),)))
    assert answer.verdict.first.kind is OutcomeKind.ERROR
    (row,) = answer.effect.workloads
    assert row.short_words == "1 new, 1 failed"
    assert answer.effect.untouched_workloads == 0
