"""Conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2, with annotations."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.conversion.autoscaler import new_autoscaler, old_autoscaler

INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "i"}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
SELECTOR = {
    "matchExpressions": [{"values": ["b"], "operator": "In", "key": "a"}],
    "matchLabels": {"z": "1", "b": "2"},
}
ALPHA = "autoscaling.alpha.kubernetes.io/"


def old_note(name, spec=None, status=None):
    """Return the value of an annotation of an autoscaler that was converted to v1."""
    autoscaler = {"metadata": {"name": "h"}, "spec": spec or {}, "status": status or {}}
    return old_autoscaler(autoscaler)["metadata"]["annotations"][ALPHA + name]


def new_of(notes, **spec):
    """Return the v2 form of a v1 autoscaler with these annotations."""
    named = {ALPHA + name: value for name, value in notes.items()}
    return new_autoscaler({"metadata": {"annotations": named}, "spec": spec})


METRICS = [
    (
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "m", "selector": SELECTOR},
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
        (
            '"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5","selector":'
            '{"matchLabels":{"b":"2","z":"1"},'
            '"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}'
        ),
    ),
    (
        {
            "type": "Object",
            "object": {
                "describedObject": INGRESS,
                "metric": {"name": "m"},
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
        (
            '"type":"Object","object":{"target":{"kind":"Ingress","name":"i",'
            '"apiVersion":"networking.k8s.io/v1"},"metricName":"m","targetValue":"0",'
            '"averageValue":"5"}'
        ),
    ),
    (
        {
            "type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "3"}},
        },
        '"type":"External","external":{"metricName":"q","targetValue":"3"}',
    ),
    (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "c",
                "target": {"type": "Utilization", "averageUtilization": 5},
            },
        },
        (
            '"type":"ContainerResource","containerResource":{"name":"cpu",'
            '"targetAverageUtilization":5,"container":"c"}'
        ),
    ),
    (MEMORY, '"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}'),
]


@pytest.mark.parametrize(("metric", "written"), METRICS)
def test_a_metric_round_trips_through_the_annotation_of_v1(metric, written):
    note = old_note("metrics", {"metrics": [metric]})
    assert note == f"[{{{written}}}]"
    assert new_of({"metrics": note})["spec"]["metrics"] == [metric]


def test_the_cpu_metric_becomes_the_last_metric_of_v2():
    old = old_autoscaler({"spec": {"metrics": [CPU, MEMORY]}})
    assert old["spec"] == {"targetCPUUtilizationPercentage": 80}
    assert new_autoscaler(old)["spec"] == {"metrics": [MEMORY, CPU]}


def test_all_current_metrics_are_in_the_annotation():
    current = [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 0, "averageValue": "0"}},
        },
        {"type": "External", "external": {"metric": {"name": "q"}, "current": {"value": "3"}}},
    ]
    status = {"currentMetrics": current}
    assert old_note("current-metrics", status=status) == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":0,'
        '"currentAverageValue":"0"}},'
        '{"type":"External","external":{"metricName":"q","currentValue":"3"}}]'
    )
    old = old_autoscaler({"status": status})
    assert old["status"]["currentCPUUtilizationPercentage"] == 0
    assert new_autoscaler(old)["status"]["currentMetrics"] == current


def test_the_current_cpu_utilization_of_v1_becomes_a_metric_of_v2():
    new = new_autoscaler({"status": {"currentCPUUtilizationPercentage": 7}})
    resource = {"name": "cpu", "current": {"averageUtilization": 7}}
    assert new["status"] == {"currentMetrics": [{"type": "Resource", "resource": resource}]}


def test_behavior_is_annotated_with_the_names_of_its_go_fields():
    rules = {
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}],
        "tolerance": "100m",
    }
    note = old_note("behavior", {"behavior": {"scaleDown": rules}})
    assert note == (
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max",'
        '"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":5}],"Tolerance":"100m"}}'
    )
    assert new_of({"behavior": note})["spec"]["behavior"] == {"scaleDown": rules}
    lower = '{"scaleup":{"stabilizationWindowSeconds":3}}'
    found = new_of({"behavior": lower})["spec"]["behavior"]
    assert found == {"scaleUp": {"stabilizationWindowSeconds": 3}}


def test_a_condition_without_a_transition_time_is_annotated_with_null():
    status = {"conditions": [{"message": "a<b", "status": "True", "type": "AbleToScale"}]}
    assert old_note("conditions", status=status) == (
        '[{"type":"AbleToScale","status":"True","lastTransitionTime":null,"message":"a\\u003cb"}]'
    )


@pytest.mark.parametrize(
    "nonsense", ["", "abc", "3", "[3]", '{"ScaleUp":4}', '[{"pods":3}]', '[{"type":5}]']
)
def test_invalid_annotations_are_dropped(nonsense):
    names = ("metrics", "current-metrics", "conditions", "behavior")
    new = new_of(dict.fromkeys(names, nonsense), maxReplicas=3)
    assert "annotations" not in new["metadata"]
    assert "behavior" not in new["spec"]


def test_conversion_annotations_of_v2_objects_are_dropped():
    given = {ALPHA + "metrics": json.dumps([]), "mine": "kept"}
    old = old_autoscaler({"metadata": {"annotations": given}, "spec": {"metrics": [CPU]}})
    assert old["metadata"]["annotations"] == {"mine": "kept"}
