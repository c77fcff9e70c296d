"""Priority classes derived from the pods of a dump without PriorityClasses."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.replicas import neighbouring_replicas
from fairlead.engine.workloads.pod_control.pod_template import class_name, missing_classes


def pod(created="2026-01-01T00:00:00Z", **spec):
    return decode_as(Pod, {"metadata": {"name": "p", "creationTimestamp": created}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, ""),
        ({"priority": 0}, ""),
        ({"priority": 0, "priorityClassName": "nightly"}, "nightly"),
        ({"priority": 7}, "fairlead-priority-7"),
        ({"priority": -7}, "fairlead-priority-minus-7"),
        ({"priority": 7, "preemptionPolicy": "Never"}, "fairlead-priority-7-never"),
        ({"priority": 7, "preemptionPolicy": "PreemptLowerPriority"}, "fairlead-priority-7"),
    ],
)
def test_the_names_of_derived_classes(spec, name):
    assert class_name(pod(**spec).spec) == name


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"priority": 0},
        {"priorityClassName": "nobody-knows"},
        {"priority": 2_000_001_000, "priorityClassName": "system-node-critical"},
        {"priority": 5, "priorityClassName": "system-of-mine"},
        {"priority": 1_000_000_001},
    ],
)
def test_classes_that_no_user_can_create_are_not_derived(spec):
    assert missing_classes(neighbouring_replicas([pod(**spec)]), []) == []


def test_the_newest_pod_gives_the_fields_of_the_class():
    old = pod(priority=1, priorityClassName="x")
    new = pod("2026-02-01T00:00:00Z", priority=2, priorityClassName="x")
    for pods in ([old, new], [new, old]):
        assert [one["value"] for one in missing_classes(neighbouring_replicas(pods), [])] == [2]
