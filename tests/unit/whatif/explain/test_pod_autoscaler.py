"""Explanations of HorizontalPodAutoscalers."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError

CPU = {"type": "Utilization", "averageUtilization": 50}


def resource(name="cpu", **more):
    return {"type": "Resource", "resource": {"name": name, **more}}


def external(**more):
    return {"type": "External", "external": {"metric": {"name": "queue"}, **more}}


def autoscaler(*current, metrics=None, conditions=(), **spec):
    """Return an autoscaler of the Deployment web with a target of 50 % of the cpu requests."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": metrics or [resource(target=CPU)],
        **spec,
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
        "status": {"currentMetrics": list(current), "conditions": list(conditions)},
    }


def percent(value):
    return resource(current={"averageUtilization": value, "averageValue": "1"})


def condition(kind, reason, message="", status="True"):
    return {"type": kind, "status": status, "reason": reason, "message": message}


@pytest.fixture
def explained(snapshot, make):
    def explain(one, replicas=4, nodes=1, **spec):
        """Return the explanation of `one`; each node has room for four pods of its target."""
        web = make.workload("Deployment", "web", replicas=replicas, **spec)
        found = snapshot(*(make.node(f"n{at}", cpu="4") for at in range(nodes)), web, one)
        return explain_object(found, "hpa/web", SchedulerConfig(), NO_CHOICE)

    return explain


def rows(answer, name):
    return next(table.rows for table in answer.tables if table.name == name)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (100, "scales Deployment default/web from 4 to 8 replicas; its metrics propose 8 repl"),
        (200, "scales Deployment default/web from 4 to 9 replicas; its metrics propose 16 repl"),
        (25, "scales Deployment default/web from 4 to 2 replicas; its metrics propose 2 replicas"),
        (55, "keeps the 4 replicas of Deployment default/web, as its metrics propose."),
        (56, "scales Deployment default/web from 4 to 5 replicas; its metrics propose 5 replicas"),
        (45, "keeps the 4 replicas of Deployment default/web, as its metrics propose."),
    ],
)
def test_the_metrics_propose_replicas(explained, value, verdict):
    answer = explained(autoscaler(percent(value)))
    assert answer.verdict.startswith(f"hpa/default/web {verdict}")


@pytest.mark.parametrize(
    ("value", "replicas", "verdict"),
    [
        (
            100,
            9,
            "keeps Deployment default/web at maxReplicas (9); its metrics propose 18 replicas.",
        ),
        (10, 2, "keeps Deployment default/web at minReplicas (2); its metrics propose 1 replica."),
        (10, 0, "is off, because Deployment default/web has 0 replicas."),
    ],
)
def test_limits_bound_the_replicas(explained, value, replicas, verdict):
    assert explained(autoscaler(percent(value)), replicas).verdict == f"hpa/default/web {verdict}"


def test_a_proposal_above_the_limit_suggests_a_higher_limit(explained):
    answer = explained(autoscaler(percent(100)), 9)
    edit, patch = "hpa/default/web:spec.maxReplicas=18", '{"spec":{"maxReplicas":18}}'
    assert [one.code for one in answer.steps] == [
        f"fairlead whatif {answer.source} --set {edit} --scale deploy/default/web=18",
        f"kubectl patch hpa -n default web -p '{patch}'",
    ]
    assert explained(autoscaler(percent(100)), 4).steps == ()


def test_the_tolerance_of_the_direction_applies(explained):
    behavior = {"scaleUp": {"tolerance": "0.5"}, "scaleDown": {"selectPolicy": "Disabled"}}
    answer = explained(autoscaler(percent(70), behavior=behavior))
    assert answer.facts["proposal"] == 4
    assert "behavior disables scaling down." in answer.findings
    assert explained(autoscaler(percent(40), behavior=behavior)).facts["proposal"] == 4  # ceil(3.2)
    assert explained(autoscaler(percent(30), behavior=behavior)).facts["proposal"] == 3


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ({"maxReplicas": 3}, "from 4 to 3 replicas, because maxReplicas is 3."),
        ({"minReplicas": 6}, "from 4 to 6 replicas, because minReplicas is 6."),
    ],
)
def test_replicas_outside_the_limits_are_set_without_metrics(explained, limits, verdict):
    answer = explained(autoscaler(percent(50), **limits))
    assert answer.verdict == f"hpa/default/web scales Deployment default/web {verdict}"


@pytest.mark.parametrize(
    ("value", "direction", "proposed"), [(100, "up", 8), (25, "down", 2), (50, "up", 4)]
)
def test_disabled_scaling_keeps_the_replicas(explained, value, direction, proposed):
    name = f"scale{direction.title()}"
    answer = explained(autoscaler(percent(value), behavior={name: {"selectPolicy": "Disabled"}}))
    assert answer.verdict.startswith("hpa/default/web keeps the 4 replicas of Deployment")
    assert answer.facts["proposal"] == proposed
    assert answer.findings[0] == f"behavior disables scaling {direction}."


@pytest.mark.parametrize(
    ("value", "rules", "finding"),
    [
        (100, {"scaleUp": {}}, "behavior adds at most 1 pod in 10m00s."),
        (
            25,
            {"scaleDown": {"selectPolicy": "Min"}},
            "behavior removes at most 1 pod in 10m00s or 9% of the pods in 15s, whichever is less.",
        ),
        (50, {"scaleUp": {}}, None),
    ],
)
def test_policies_limit_the_speed(explained, value, rules, finding):
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 600}]
    if "scaleDown" in rules:
        policies.append({"type": "Percent", "value": 9, "periodSeconds": 15})
    behavior = {name: {**one, "policies": policies} for name, one in rules.items()}
    answer = explained(autoscaler(percent(value), behavior=behavior))
    assert [one for one in answer.findings if "behavior" in one] == ([finding] if finding else [])


def test_metrics_of_the_same_name_differ_by_their_selectors(explained):
    def of(queue, **more):
        chosen = {"name": "length", "selector": {"matchLabels": {"queue": queue}}}
        return {"type": "External", "external": {"metric": chosen, **more}}

    metrics = [of(queue, target={"averageValue": "30"}) for queue in ("a", "b")]
    current = [of("a", current={"averageValue": "60"}), of("b", current={"averageValue": "15"})]
    found = rows(explained(autoscaler(*current, metrics=metrics)), "metrics")
    assert [(row["metric"], row["proposal"]) for row in found] == [
        ("length (external, queue=a)", 8),
        ("length (external, queue=b)", 2),
    ]


def test_the_proposals_are_those_of_the_replicas_in_the_status(explained):
    """The autoscaler has just scaled from 2 to 4; its metrics are older."""
    one = autoscaler(percent(100))
    one["status"]["currentReplicas"] = 2
    assert explained(one).verdict == (
        "hpa/default/web keeps the 4 replicas of Deployment default/web, as its metrics propose."
    )


def test_a_custom_resource_has_the_replicas_of_the_status(explained):
    reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
    one = autoscaler(percent(100), scaleTargetRef=reference)
    assert explained(one).verdict == (
        "hpa/default/web has no replicas in its status, so those of Rollout default/web are not "
        "known."
    )
    one["status"]["currentReplicas"] = 3
    answer = explained(one)
    assert answer.verdict.startswith(
        "hpa/default/web scales Rollout default/web from 3 to 6 replicas"
    )
    assert answer.findings == (
        "The pods of Rollout default/web are not simulated, so their room is not known.",
    )


def test_the_highest_proposal_counts_and_a_missing_value_prevents_scaling_down(explained):
    metrics = [resource(target=CPU), external(target={"averageValue": "30"})]
    queue = external(current={"averageValue": "45"})
    answer = explained(autoscaler(percent(25), queue, metrics=metrics))
    assert [row["proposal"] for row in rows(answer, "metrics")] == [2, 6]
    assert answer.facts["proposal"] == 6
    found = [tuple(row.values())[:3] for row in rows(answer, "metrics")]
    assert found == [("cpu", "25%", "50%"), ("queue (external)", "45", "30")]
    answer = explained(autoscaler(percent(25), metrics=metrics))
    assert answer.verdict == (
        "hpa/default/web keeps the 4 replicas of Deployment default/web: without a value of "
        "queue (external), it does not scale down."
    )
    answer = explained(autoscaler(percent(100), metrics=metrics))
    assert "from 4 to 8 replicas" in answer.verdict


@pytest.mark.parametrize(
    ("value", "reason", "verdict"),
    [
        (
            25,
            "ScaleDownStabilized",
            "from 4 to 2 replicas: its recent recommendations were higher.",
        ),
        (60, "ScaleUpStabilized", "from 4 to 5 replicas: its recent recommendations were lower."),
    ],
)
def test_the_stabilization_window_delays_scaling(explained, value, reason, verdict):
    conditions = [condition("AbleToScale", reason)]
    answer = explained(autoscaler(percent(value), conditions=conditions))
    assert answer.verdict == f"hpa/default/web waits to scale Deployment default/web {verdict}"


def test_a_failure_is_quoted_and_containers_without_requests_are_named(explained):
    why = "failed to get cpu utilization: missing request for cpu"
    failed = condition("ScalingActive", "FailedGetResourceMetric", why, "False")
    containers = [{"name": "main", "image": "i"}, {"name": "proxy", "image": "i"}]
    answer = explained(autoscaler(conditions=[failed]), containers=containers)
    assert answer.verdict == f"hpa/default/web does not scale Deployment default/web: {why}."
    assert answer.findings[0] == (
        "Containers main, proxy have no cpu request, so the percentage of requests cannot be "
        "computed."
    )
    assert rows(answer, "conditions") == [failed]


@pytest.mark.parametrize(
    ("spec", "lacking"),
    [
        ({"containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1}}}]}, 0),
        (
            {
                "resources": {"requests": {"cpu": 1}},
                "containers": [{"name": "main", "image": "i"}],
            },
            0,
        ),
        (
            {
                "containers": [
                    {"name": "main", "image": "i", "resources": {"requests": {"cpu": 1}}}
                ],
                "initContainers": [{"name": "proxy", "image": "i", "restartPolicy": "Always"}],
            },
            1,
        ),
    ],
)
def test_containers_that_have_a_request_are_not_named(explained, spec, lacking):
    """A limit counts as a request, and so does a request of the whole pod; sidecars need one."""
    answer = explained(autoscaler(percent(50)), **spec)
    sentence = (
        "Container proxy has no cpu request, so the percentage of requests cannot be computed."
    )
    assert [one for one in answer.findings if "request" in one] == [sentence] * lacking


def test_a_pods_default_request_counts(snapshot, make):
    """Admission sets it on pods, not on pod templates."""
    bare = {"containers": [{"name": "main", "image": "i"}]}
    web = make.workload("Deployment", "web", replicas=4, **bare)
    labels = web["spec"]["template"]["metadata"]["labels"]
    pod = make.pod("web-1", node_name="n0")
    pod["metadata"]["labels"] = labels
    found = snapshot(make.node("n0", cpu="9"), web, pod, autoscaler(percent(50)))
    answer = explain_object(found, "hpa/web", SchedulerConfig(), NO_CHOICE)
    assert not any("cpu request" in one for one in answer.findings)


def test_an_autoscaler_without_status_has_no_metrics(explained):
    verdict = "hpa/default/web has no metrics in the dump; Deployment default/web has 4 replicas."
    assert explained(autoscaler()).verdict == verdict


def test_a_missing_target_is_named(explained):
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone"}
    answer = explained(autoscaler(percent(90), scaleTargetRef=reference))
    assert answer.verdict == (
        "hpa/default/web scales nothing: Deployment default/gone is not in the dump or has no "
        "replicas."
    )


@pytest.mark.parametrize(
    ("nodes", "maximum", "finding"),
    [
        (1, 9, "4 of the 5 pods up to maxReplicas (9) fit on the present nodes: Insufficient cpu."),
        (2, 9, "All 5 pods up to maxReplicas (9) fit on the present nodes."),
        (1, 5, "The pod up to maxReplicas (5) fits on the present nodes."),
    ],
)
def test_the_explanation_says_how_many_more_pods_fit(explained, nodes, maximum, finding):
    """No pod of the target exists yet."""
    answer = explained(autoscaler(percent(90), maxReplicas=maximum), nodes=nodes)
    assert answer.findings == (finding,)
    assert bool(rows(answer, "refusals")) is ("Insufficient" in finding)


def test_the_explanation_says_that_no_more_pod_fits(explained):
    answer = explained(autoscaler(percent(90)), nodeSelector={"pool": "none"})
    assert answer.findings[0].startswith("No pod up to maxReplicas (9) fits on the present nodes: ")
    assert answer.facts["fitting"] == 0


def test_a_pod_with_scheduling_gates_is_not_placed(explained):
    answer = explained(autoscaler(percent(90)), schedulingGates=[{"name": "wait"}])
    assert answer.findings[0].startswith("No pod can be added: its pods are kept out of the sched")


@pytest.mark.parametrize(
    "status",
    [
        {"currentMetrics": [{"type": "Resource", "resource": None}]},
        {"currentMetrics": [resource(current={"averageUtilization": "x"})]},
        {"currentMetrics": [{}], "conditions": [{}]},
    ],
)
def test_an_invalid_status_has_no_metrics(explained, status):
    one = autoscaler() | {"status": status}
    assert "has no metrics in the dump" in explained(one).verdict


@pytest.mark.parametrize("field", ["currentMetrics", "conditions", "currentReplicas"])
def test_a_status_of_another_type_is_refused(explained, field):
    with pytest.raises(InputError, match=f"HorizontalPodAutoscaler .*: status.{field}: Expected"):
        explained(autoscaler() | {"status": {field: "x"}})


def test_an_invalid_spec_is_refused(explained):
    with pytest.raises(InputError, match="maxReplicas"):
        explained(autoscaler(maxReplicas="many"))
