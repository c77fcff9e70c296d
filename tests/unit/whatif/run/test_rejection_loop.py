"""Pods that kubelets refuse are created again: the loop is named, bounded, and ends with room."""

from __future__ import annotations

import pytest
import yaml

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if

NO_FILTER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}],
}
SENTENCE = (
    "The kubelet of a refuses 2 pods of deploy/default/web (OutOfcpu), and they are created again "
    "without end."
)


@pytest.fixture
def ask(make, snapshot, tmp_path):
    """Returns the answer about `change` for four pods on two nodes, which `a` can run alone."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(NO_FILTER), "utf-8")
    web = make.workload("Deployment", replicas=4)
    [container] = web["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"]["cpu"] = "1500m"

    def ask_what_if(**change):
        conditions = Conditions(config=str(config), horizon=seconds(7 * 24 * 3600))
        read = snapshot(make.node("a"), make.node("b"), web)
        return what_if(read, ClusterChange(**change), conditions)

    return ask_what_if


def test_the_loop_is_the_verdict(ask):
    """In a week, the run has few refusals; the verdict names kubelet, workload and reason."""
    answer = ask(drain=("b",))
    assert answer.verdict.first.sentence == SENTENCE
    [loop] = answer.changed.recurrences
    assert (loop.kind, loop.at - answer.changed.started_at) == ("rejections", seconds(1))
    assert not answer.changed.settled


@pytest.fixture
def ask_about_new(make, snapshot, tmp_path):
    """Returns the sentences about the change that applies a workload to two nodes."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(NO_FILTER), "utf-8")

    def sentences(workload):
        full = make.pod("full", node_name="a", cpu="2")
        read = snapshot(make.node("a"), make.node("b"), full)
        answer = what_if(read, ClusterChange(apply=(workload,)), Conditions(config=str(config)))
        return [one.sentence for one in answer.verdict.findings]

    return sentences


def test_a_daemon_set_on_one_full_node(make, ask_about_new):
    """Its other pod runs, but this does not end the rejections."""
    agent = make.workload("DaemonSet", "agent", cpu="3")
    del agent["spec"]["replicas"]
    first, *_ = ask_about_new(agent)
    assert first == (
        "The kubelet of a refuses 1 pod of ds/default/agent (OutOfcpu), and it is created again "
        "without end."
    )


def test_a_job_fails(make, ask_about_new):
    """The backoffLimit of the Job ends the rejections, so no sentence says that they go on."""
    job = make.workload("Job", "import", cpu="9", restartPolicy="Never") | {
        "apiVersion": "batch/v1"
    }
    job["spec"] = {"template": job["spec"]["template"]}
    first, *others = ask_about_new(job)
    assert first.startswith("Job default/import fails: Job has reached the specified backoff limit")
    assert not [one for one in others if "refuse" in one]


def test_a_loop_that_ends(ask):
    """The refused pods run when the failed node is back."""
    answer = ask(failures=Failures(fail_node=("b",)), lasts="20m")
    words = " ".join(one.sentence for one in answer.verdict.findings)
    assert "(OutOfcpu), and they are created again until all run." in words


def test_pods_that_are_refused_do_not_count_as_running(ask):
    """Of four more pods, all are refused; no sentence says that they run."""
    answer = ask(scale=("deploy/web=8",))
    sentences = " ".join(one.sentence for one in answer.verdict.findings)
    assert "4 pods of deploy/default/web (OutOfcpu)" in sentences
    assert "more pods" not in sentences
