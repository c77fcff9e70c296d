"""The step that raises the backoffLimit of Jobs whose pods the change displaces."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if

DRAIN = ClusterChange(drain=("a",))
RAISED = (
    "before the change, raise the backoffLimit of job/default/load to {}; a new pod then starts "
)
PATCH = 'kubectl patch job -n default load -p \'{{"spec":{{"backoffLimit":{}}}}}\''


@pytest.fixture
def job(make):
    """A function that returns a Job and its running pods, one on each of `nodes`."""

    def made(*nodes, name="load", failed=0, status=(), **spec):
        pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        found = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"template": {"spec": pod_spec}, "parallelism": len(nodes), **spec},
            "status": {"active": len(nodes), "failed": failed, **dict(status)},
        }
        pods = []
        for number, node in enumerate(nodes):
            pod = make.pod(f"{name}-{number}", node_name=node, owner=name, restartPolicy="Never")
            pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
            pod["metadata"]["labels"] = {"batch.kubernetes.io/controller-uid": name}
            pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
            pods.append(pod)
        return found, *pods

    return made


def raising(answer):
    """Return the (words, command) of the steps that raise a backoffLimit."""
    steps = [(one.words, one.code) for one in answer.next_steps]
    return [step for step in steps if "backoffLimit" in step[0]]


@pytest.mark.parametrize(
    ("change", "failed", "needed"),
    [
        pytest.param(DRAIN, 0, 1, id="a drain"),
        pytest.param(DRAIN, 2, 3, id="earlier failures"),
        pytest.param(ClusterChange(delete=("node/a",)), 0, 1, id="a deleted node"),
        pytest.param(ClusterChange(failures=Failures(fail_node=("a",))), 0, 1, id="a failed node"),
    ],
)
def test_a_job_that_fails_because_of_the_change_gets_a_higher_limit(
    snapshot, make, job, change, failed, needed
):
    objects = job("a", failed=failed, backoffLimit=failed)
    cluster = snapshot(make.node("a"), make.node("b"), *objects)
    answer = what_if(cluster, change)
    assert OutcomeKind.ERROR in [one.kind for one in answer.verdict.findings]
    [(words, command)] = raising(answer)
    assert words.startswith(RAISED.format(needed))
    assert command == PATCH.format(needed)
    edit = f"job/load:spec.backoffLimit={needed}"
    again = what_if(cluster, ClusterChange(drain=change.drain, delete=change.delete,
                                           failures=change.failures, set=(edit,)))  # fmt: skip
    assert not again.effect.lasting_errors


def test_each_displaced_pod_counts(snapshot, make, job):
    objects = job("a", "a", backoffLimit=1)
    answer = what_if(snapshot(make.node("a"), make.node("b"), *objects), DRAIN)
    assert [command for _, command in raising(answer)] == [PATCH.format(2)]


def test_several_jobs_get_one_command(snapshot, make, job):
    objects = *job("a", backoffLimit=0), *job("a", name="other", backoffLimit=0)
    [(words, command)] = raising(what_if(snapshot(*map(make.node, "ab"), *objects), DRAIN))
    names = "job/default/load to 1 and job/default/other to 1"
    assert words.startswith(f"before the change, raise the backoffLimit of {names}; new pods then")
    assert command == f"{PATCH.format(1)} && {PATCH.format(1).replace('load', 'other')}"


def test_a_job_gets_no_step_if_no_limit_helps_or_the_change_writes_it(
    snapshot, make, job, tmp_path
):
    policy = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    objects = job("a", backoffLimit=0)
    file = tmp_path / "job.json"
    file.write_text(json.dumps(objects[0]))
    edited = ClusterChange(drain=("a",), set=("job/load:spec.activeDeadlineSeconds=9000",))
    applied = ClusterChange(drain=("a",), apply=(str(file),))
    cases = (job("a", podFailurePolicy=policy), DRAIN), (objects, edited), (objects, applied)
    for cluster, change in cases:
        answer = what_if(snapshot(make.node("a"), make.node("b"), *cluster), change)
        assert [one.subject for one in answer.effect.lasting_errors] == ["Job default/load"]
        assert not raising(answer)
