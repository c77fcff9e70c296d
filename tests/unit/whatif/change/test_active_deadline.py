"""Jobs and pods that a change starts fail at a deadline only if their run time is known."""

from __future__ import annotations

import pytest

from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if

STAGE = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: complete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.ownerReferences.[].kind', operator: In, values: [Job]}
    - {key: .status.phase, operator: In, values: [Running]}
  delay: {durationMilliseconds: 90000}
  next: {statusTemplate: "phase: Succeeded"}
"""
NOTE = "activeDeadlineSeconds of Job default/j (60s) is not applied"


def job(run_duration="", **spec):
    annotations = {RUN_DURATION: run_duration} if run_duration else {}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"activeDeadlineSeconds": 60, "template": template, **spec},
    }


def noted(answer):
    return [note for note in answer.changed.notes if note.startswith(NOTE)]


def test_pods_of_a_new_job_run_until_the_end_if_their_run_time_is_unknown(make, snapshot, write):
    applied = (write("job.json", job()),)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=applied))
    assert not answer.effect.errors
    assert [str(pod.workload) for pod in answer.difference.placed] == ["job/default/j"]
    assert noted(answer)


@pytest.mark.parametrize("suspend", ["false", "null"])
def test_a_resumed_job_has_no_deadline_either(make, snapshot, suspend):
    suspended = snapshot(make.node("a"), job(suspend=True))
    answer = what_if(suspended, ClusterChange(set=(f"job/j:spec.suspend={suspend}",)))
    assert not answer.effect.errors
    assert len(answer.difference.placed) == 1
    assert noted(answer)


@pytest.mark.parametrize(("run_duration", "fails"), [("90s", 1), ("30s", 0)])
def test_a_deadline_applies_if_the_run_time_is_annotated(
    make, snapshot, write, run_duration, fails
):
    applied = (write("job.json", job(run_duration)),)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=applied))
    assert [one.subject for one in answer.effect.errors] == ["Job default/j"] * fails
    assert not noted(answer)


def test_a_deadline_applies_if_a_stage_completes_the_pods(make, snapshot, write, tmp_path):
    (tmp_path / "stages.yaml").write_text(STAGE)
    conditions = Conditions(kwok_stages=(str(tmp_path / "stages.yaml"),))
    applied = (write("job.json", job()),)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=applied), conditions)
    assert [one.subject for one in answer.effect.errors] == ["Job default/j"]
    assert not noted(answer)


@pytest.mark.parametrize(("run_duration", "failed"), [("", 0), ("90s", 1)])
def test_the_deadline_of_the_pods_of_a_new_job_applies_if_their_run_time_is_known(
    make, snapshot, write, run_duration, failed
):
    made = job(run_duration)
    del made["spec"]["activeDeadlineSeconds"]
    made["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 60
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(write("job.json", made),)))
    assert len(answer.difference.completed) == failed
    assert len(answer.difference.placed) == (not failed)
    words = "activeDeadlineSeconds of Job default/j (60s for each pod) is not applied"
    assert any(note.startswith(words) for note in answer.changed.notes) != bool(failed)


def test_the_deadline_of_a_new_pod_is_ignored_too(make, snapshot, write):
    pod = make.pod("p", activeDeadlineSeconds=60)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(write("pod.json", pod),)))
    assert [one.name for one in answer.difference.placed] == ["p"]
    words = "activeDeadlineSeconds of Pod default/p (60s) is not applied"
    assert any(note.startswith(words) for note in answer.changed.notes)


@pytest.mark.parametrize(
    ("deadline_s", "fails_after_s"), [(1800, 1800), (3500, 3500), (7200, None)]
)
def test_the_run_waits_for_a_deadline_that_the_change_sets(
    make, snapshot, deadline_s, fails_after_s
):
    """The run waits until its horizon, which is one hour."""
    running = job(activeDeadlineSeconds=86_400)
    running["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    cluster = snapshot(make.node("a"), running)
    change = ClusterChange(set=(f"job/j:spec.activeDeadlineSeconds={deadline_s}",))
    answer = what_if(cluster, change)
    fails = fails_after_s is not None
    assert [one.subject for one in answer.effect.errors] == ["Job default/j"] * fails
    assert len(answer.difference.removed) == fails
    lasted = answer.changed.ended_at - answer.changed.started_at
    assert lasted >= seconds(fails_after_s) if fails else lasted < seconds(60)


def test_a_run_does_not_wait_for_deadlines_that_the_change_does_not_set(make, snapshot):
    running = job(activeDeadlineSeconds=1800)
    running["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    cluster = snapshot(make.node("a"), running)
    answer = what_if(cluster, ClusterChange(set=("job/j:metadata.labels.a=b",)))
    assert answer.changed.ended_at - answer.changed.started_at < seconds(60)
