"""Next steps for HorizontalPodAutoscalers whose limits do not admit the replicas."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if


def autoscaler(minimum, maximum):
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": minimum,
            "maxReplicas": maximum,
            "metrics": [],
        },
    }


@pytest.fixture
def steps(snapshot, make):
    """Returns the steps for a Deployment of two pods with room for four, which `change` scales."""

    def steps_of(**change):
        cluster = snapshot(
            make.node("a"), make.workload("Deployment", "web", replicas=2), autoscaler(2, 3)
        )
        answer = what_if(cluster, ClusterChange(**change))
        return [(one.words, one.options) for one in answer.next_steps if "hpa" in one.options]

    return steps_of


@pytest.mark.parametrize(
    ("count", "limit", "rest"),
    [
        (4, "maxReplicas", ""),
        (6, "maxReplicas", "; 2 pods then do not run"),
        (1, "minReplicas", ""),
    ],
)
def test_a_limit_that_admits_the_replicas_is_suggested(steps, count, limit, rest):
    [step] = steps(scale=(f"deploy/web={count}",))
    assert step == (
        f"ask again with {limit} {count} for HorizontalPodAutoscaler default/web{rest}",
        f"--set hpa/default/web:spec.{limit}={count}",
    )


def test_the_step_names_the_quota_that_refuses_further_pods(snapshot, make):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "5"}}}
    quota["metadata"] = {"name": "q", "namespace": "default"}
    web = make.workload("Deployment", "web", replicas=2, cpu="100m")
    cluster = snapshot(make.node("a"), web, autoscaler(2, 3), quota)
    answer = what_if(cluster, ClusterChange(scale=("deploy/web=7",)))
    [words] = [one.words for one in answer.next_steps if "hpa" in one.options]
    assert words.endswith("; 2 pods then do not run; quota/default/q refuses pods")


def test_nothing_is_suggested_within_the_limits_or_if_the_question_sets_them(steps):
    assert steps(scale=("deploy/web=3",)) == []
    assert steps(scale=("deploy/web=5",), set=("hpa/web:spec.maxReplicas=4",)) == []


def test_more_replicas_than_the_metrics_propose_need_a_higher_minimum(snapshot, make, write):
    """Two replicas are enough for the load, and five are within the limits."""
    scaler = autoscaler(2, 9)
    target = {"type": "Utilization", "averageUtilization": 50}
    scaler["spec"]["metrics"] = [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    answer = what_if(
        snapshot(make.node("a", cpu="64"), make.workload(replicas=2, cpu="1"), scaler),
        ClusterChange(scale=("deploy/web=5",)),
        Conditions(load=write("load.yaml", "- workload: deploy/web\n  cpu: 1\n")),
    )
    [step] = [one for one in answer.next_steps if "hpa" in one.options]
    assert step.options == "--set hpa/default/web:spec.minReplicas=5"
