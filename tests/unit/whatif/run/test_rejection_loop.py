"""Pods that kubelets refuse are created again: the loop is named, bounded, and ends with room."""

from __future__ import annotations

import pytest
import yaml

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
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


def test_pods_that_are_refused_do_not_count_as_running(ask):
    """Of four more pods, all are refused; no sentence says that they run."""
    answer = ask(scale=("deploy/web=8",))
    sentences = " ".join(one.sentence for one in answer.verdict.findings)
    assert "4 pods of deploy/default/web (OutOfcpu)" in sentences
    assert "more pods" not in sentences
