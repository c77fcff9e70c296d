"""Derived facts about pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod, PodStatus
from fairlead.api.pods.facts import (
    condition,
    controller_of,
    differs_in_status_only,
    is_daemon_pod,
    is_sidecar,
    is_static,
    is_terminal,
    is_terminating,
    pod_priority,
    preempts_lower,
    workload,
)


def pod(**parts):
    return decode_as(Pod, parts)


@pytest.mark.parametrize(("spec", "priority"), [({}, 0), ({"priority": -7}, -7)])
def test_a_pod_without_priority_has_priority_0(spec, priority):
    """The default is the one that admission sets."""
    assert pod_priority(pod(spec=spec)) == priority


@pytest.mark.parametrize(
    ("policy", "expected"), [("", True), ("PreemptLowerPriority", True), ("Never", False)]
)
def test_only_the_preemption_policy_never_prevents_preemption(policy, expected):
    """A missing policy means PreemptLowerPriority."""
    assert preempts_lower(pod(spec={"preemptionPolicy": policy})) is expected


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("", False), ("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_succeeded_and_failed_are_terminal_phases(phase, expected):
    """The phases are Succeeded and Failed."""
    assert is_terminal(pod(status={"phase": phase})) is expected


def test_a_pod_with_deletion_timestamp_is_terminating():
    """No other field makes a pod terminating."""
    assert is_terminating(pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert not is_terminating(pod())


def test_a_changed_condition_is_a_difference_in_status_only():
    """Spec, owners, labels and annotations are unchanged."""
    before = pod(metadata={"uid": "u", "labels": {"app": "web"}})
    after = replace(before, status=PodStatus(phase="Running"))
    assert differs_in_status_only(before, after)


@pytest.mark.parametrize(
    "part",
    [
        {"uid": "other"},
        {"labels": {"app": "db"}},
        {"annotations": {"a": "1"}},
        {"finalizers": ("x/y",)},
        {"deletion_timestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_changed_metadata_is_more_than_a_difference_in_status(part):
    """These parts of the metadata affect what controllers do with the pod."""
    before = pod(metadata={"uid": "u", "labels": {"app": "web"}})
    after = replace(before, metadata=replace(before.metadata, **part))
    assert not differs_in_status_only(before, after)


def test_the_controller_is_the_owner_reference_with_controller_true():
    """Other owners only prevent garbage collection."""
    owners = [
        {"kind": "Job", "name": "j"},
        {"kind": "DaemonSet", "name": "d", "controller": True},
    ]
    owned = pod(metadata={"ownerReferences": owners})
    assert controller_of(owned.metadata).name == "d"
    assert is_daemon_pod(owned)
    half_owned = pod(metadata={"ownerReferences": [{"kind": "DaemonSet", "name": "d"}]})
    assert controller_of(half_owned.metadata) is None
    assert not is_daemon_pod(half_owned)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, False),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, True),
        ({"annotations": {"kubernetes.io/config.mirror": "0123"}}, True),
        ({"ownerReferences": [{"kind": "Node", "name": "n", "controller": True}]}, True),
        ({"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}, False),
    ],
)
def test_static_pods_are_recognized_by_annotation_or_owner(metadata, expected):
    """A static pod is a mirror pod, has another source than the API, or is owned by its node."""
    assert is_static(pod(metadata=metadata)) is expected


def test_restartable_init_containers_are_sidecars():
    """restartPolicy Always makes an init container a sidecar."""
    specs = [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}]
    containers = pod(spec={"initContainers": specs}).spec.init_containers
    assert [is_sidecar(container) for container in containers] == [False, True]


def test_a_condition_is_found_by_type():
    """This works for pods and nodes."""
    status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]}
    for subject in (pod(status=status), decode_as(Node, {"status": status})):
        assert condition(subject, "B").status == "False"
        assert condition(subject, "C") is None


@pytest.mark.parametrize(
    ("owners", "name"),
    [
        ((), "Pod/ns/p"),
        (({"kind": "ReplicaSet", "name": "rs", "controller": True},), "ReplicaSet/ns/rs"),
        (({"kind": "ReplicaSet", "name": "rs"},), "Pod/ns/p"),
    ],
    ids=["no owner", "a controller", "another owner"],
)
def test_the_workload_of_a_pod_is_its_controller_or_itself(owners, name):
    metadata = {"name": "p", "namespace": "ns", "ownerReferences": list(owners)}
    assert workload(pod(metadata=metadata)) == name
