"""Conversion of kinds that are stored in another version than the served one."""

from __future__ import annotations

import pytest

from fairlead.apiserver.conversion.kind_conversion import internal, is_converted, shown
from fairlead.apiserver.kind import KINDS, POD, Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds

REGISTRY = ServedKinds()
NEW_EVENT = REGISTRY.find("events.k8s.io", "v1", "events")
OLD_AUTOSCALER = REGISTRY.find("autoscaling", "v1", "horizontalpodautoscalers")

CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}


def test_most_kinds_are_not_converted():
    obj = {"kind": "Pod"}
    assert shown(POD, obj) is obj
    assert internal(POD, obj) is obj
    converted = [kind for kind in KINDS if is_converted(kind)]
    assert converted == [kind for kind in KINDS if kind.stored_as != kind.api_version]


def test_events_are_converted_between_both_groups():
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "regarding": {"kind": "Pod", "name": "x"},
        "note": "n",
        "type": "Normal",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    core = internal(NEW_EVENT, event)
    assert core["apiVersion"] == "v1"
    assert core["involvedObject"] == event["regarding"]
    assert (core["message"], core["reportingComponent"]) == ("n", "a.b/c")
    assert shown(NEW_EVENT, core) == event
    assert NEW_EVENT.resource == "events"


def test_a_missing_reporter_is_empty_in_the_core_group_and_absent_in_the_other():
    core = internal(NEW_EVENT, {"apiVersion": "events.k8s.io/v1", "kind": "Event"})
    assert (core["reportingComponent"], core["reportingInstance"]) == ("", "")
    assert "reportingController" not in shown(NEW_EVENT, core)


def autoscaler(api_version, **spec):
    return {
        "apiVersion": api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, **spec},
        "status": {"currentReplicas": 1, "desiredReplicas": 0},
    }


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"metrics": [CPU]}, {"targetCPUUtilizationPercentage": 80}),
        ({}, {}),
    ],
)
def test_an_autoscaler_by_cpu_is_converted_without_loss(new, old):
    assert shown(OLD_AUTOSCALER, autoscaler("autoscaling/v2", **new)) == autoscaler(
        "autoscaling/v1", **old
    )
    assert internal(OLD_AUTOSCALER, autoscaler("autoscaling/v1", **old)) == autoscaler(
        "autoscaling/v2", **new
    )


def test_fields_that_v1_does_not_have_are_kept_in_annotations():
    new = autoscaler(
        "autoscaling/v2",
        metrics=[MEMORY, CPU],
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
    )
    able = {"type": "AbleToScale", "status": "True", "lastTransitionTime": None}
    new["status"] |= {"conditions": [able]}
    old = shown(OLD_AUTOSCALER, new)
    assert sorted(old["metadata"]["annotations"]) == [
        "autoscaling.alpha.kubernetes.io/behavior",
        "autoscaling.alpha.kubernetes.io/conditions",
        "autoscaling.alpha.kubernetes.io/metrics",
    ]
    assert old["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}
    assert internal(OLD_AUTOSCALER, old) == new


def test_the_current_cpu_utilization_has_its_own_field_in_v1():
    new = autoscaler("autoscaling/v2", metrics=[CPU])
    used = {"name": "cpu", "current": {"averageUtilization": 42}}
    new["status"]["currentMetrics"] = [{"type": "Resource", "resource": used}]
    status = shown(OLD_AUTOSCALER, new)["status"]
    assert status["currentCPUUtilizationPercentage"] == 42


def test_conversion_of_a_custom_resource_changes_only_the_api_version():
    kind = Kind("x.io", "v2", "W", "ws", is_custom=True, stored_version="x.io/v1")
    obj = {"apiVersion": "x.io/v2", "a": 1}
    assert internal(kind, obj) is obj
    assert shown(kind, obj) is obj
    assert shown(kind, {"apiVersion": "x.io/v1", "a": 1}) == {"apiVersion": "x.io/v2", "a": 1}
