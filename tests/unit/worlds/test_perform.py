"""The effects of each command on the store."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NODE, POD, POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.worlds.perform import perform
from fairlead.worlds.seeded_ids import SeededIds

REF = ObjectRef("Pod", "ns", "a", "u")


@pytest.fixture
def store(pod):
    store = Store(SeededIds(0))
    store.put_as_is(pod(uid="u"), 0)
    return store


def stored(store):
    return store.get(POD, "ns", "a")


def test_bind_sets_the_node(store):
    command = Bind(REF, "n1")
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert stored(store)["spec"]["nodeName"] == "n1"


def test_patch_status_changes_fields_and_conditions(store):
    condition = Condition("Ready", "False", "R", "m")
    command = PatchStatus(REF, {"phase": "Running"}, (condition,))
    assert perform(store, command, 10**9) == CommandSucceeded(command)
    assert stored(store)["status"] == {
        "phase": "Running",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "R",
                "message": "m",
                "lastTransitionTime": "1970-01-01T00:00:01Z",
            }
        ],
    }


def test_patch_status_of_an_outdated_version_of_a_node_fails(store, node):
    store.create(node(), 0)
    ref = ObjectRef("Node", "", "n1")
    never = Condition("Ready", "Unknown", "R", "", "1970-01-01T00:00:00Z")
    stale = PatchStatus(ref, conditions=(never,), resource_version="1")
    found = perform(store, stale, 0)
    assert isinstance(found, CommandFailed)
    assert found.reason is FailureReason.CONFLICT
    version = store.get(NODE, "", "n1")["metadata"]["resourceVersion"]
    current = PatchStatus(ref, conditions=(never,), resource_version=version)
    assert perform(store, current, 0) == CommandSucceeded(current)
    stopped = PatchStatus(ref, conditions=(Condition("Ready", "True"),))
    assert perform(store, stopped, 10**9) == CommandSucceeded(stopped)
    assert store.get(NODE, "", "n1")["status"]["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": "1970-01-01T00:00:00Z",
            "lastTransitionTime": "1970-01-01T00:00:01Z",
        }
    ]


def test_patch_object_changes_the_object(store, node):
    store.create(node(), 0)
    command = PatchObject(ObjectRef("Node", "", "n1"), {"spec": {"unschedulable": True}})
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert store.get(NODE, "", "n1")["spec"] == {"unschedulable": True}


def test_create_object_creates_the_object(store, pod):
    command = CreateObject(pod("b"))
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert store.get(POD, "ns", "b")["spec"]["priority"] == 0


def test_delete_object_starts_a_graceful_deletion(store):
    store.patch_as_is(POD, "ns", "a", {"spec": {"nodeName": "n1"}}, 0)
    command = DeleteObject(REF, 7)
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert stored(store)["metadata"]["deletionGracePeriodSeconds"] == 7


def test_evict_pod_sets_a_condition_and_deletes_the_pod(store):
    store.patch_as_is(POD, "ns", "a", {"spec": {"nodeName": "n1"}}, 0)
    command = EvictPod(REF)
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert stored(store)["status"]["conditions"][0]["type"] == "DisruptionTarget"


def test_an_event_does_not_change_the_store(store):
    version = store.version
    command = RecordEvent(REF, "Normal", "R", "A", "n", "c")
    assert perform(store, command, 0) == CommandSucceeded(command)
    assert store.version == version


@pytest.mark.parametrize(
    ("command", "reason", "words"),
    [
        (Bind(ObjectRef("Pod", "ns", "x"), "n1"), "NOT_FOUND", 'pods "x" not found'),
        (Bind(ObjectRef("Pod", "ns", "a", "v"), "n1"), "CONFLICT", "UID in precondition: v"),
        (PatchStatus(ObjectRef("Pod", "ns", "a", "v"), {"phase": "Failed"}), "CONFLICT", "UID"),
        (PatchStatus(REF, {"phase": "?"}), "INVALID", "status.phase: Unsupported value"),
        (PatchObject(REF, {"spec": {"nodeSelector": 1}}), "INVALID", "spec.nodeSelector: Expected"),
        (PatchObject(ObjectRef("Odd", "", "x"), {}), "NOT_FOUND", "could not find the requested"),
        (DeleteObject(ObjectRef("Pod", "ns", "a", "v")), "CONFLICT", "might have been deleted"),
        (
            DeleteObject(ObjectRef("PriorityClass", "", "system-node-critical")),
            "FORBIDDEN",
            "cannot be deleted",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:12],
)
def test_a_refused_command_fails_with_a_reason(store, command, reason, words):
    store.load([], 0)
    version = store.version
    outcome = perform(store, command, 0)
    assert isinstance(outcome, CommandFailed)
    assert (outcome.command, outcome.reason) == (command, FailureReason[reason])
    assert words in outcome.message
    assert store.version == version


def test_creating_an_object_with_a_taken_name_fails(store, pod):
    outcome = perform(store, CreateObject(pod()), 0)
    assert outcome.reason is FailureReason.ALREADY_EXISTS
    assert outcome.message == 'pods "a" already exists'


def test_an_eviction_without_allowed_disruptions_fails(store):
    labels = {"x": "y"}
    patch = {"metadata": {"labels": labels}, "status": {"phase": "Running"}}
    store.patch_as_is(POD, "ns", "a", patch, 0)
    budget = {
        "apiVersion": POD_DISRUPTION_BUDGET.api_version,
        "kind": POD_DISRUPTION_BUDGET.kind,
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": labels}},
    }
    store.put_as_is(budget, 0)
    assert perform(store, EvictPod(REF), 0).reason is FailureReason.TOO_MANY_REQUESTS
    store.put_as_is({**budget, "metadata": {"name": "c", "namespace": "ns"}}, 0)
    assert perform(store, EvictPod(REF), 0).reason is FailureReason.INTERNAL_ERROR


@pytest.mark.parametrize("name", ["Widget", "Widget.x.io"])
def test_an_unknown_kind_is_known_after_its_first_object(store, name):
    widget = {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    command = PatchObject(ObjectRef(name, "", "w"), {"spec": {"weight": 2}})
    assert perform(store, command, 0).reason is FailureReason.NOT_FOUND
    perform(store, CreateObject(widget), 0)
    assert perform(store, command, 0) == CommandSucceeded(command)


def test_kinds_with_the_same_name_are_distinguished_by_group(store):
    for group in ("x.io", "y.io"):
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}}
        perform(store, CreateObject(body), 0)
    perform(store, PatchObject(ObjectRef("Widget.y.io", "", "w"), {"spec": {"weight": 2}}), 0)
    stored = {kind.group: store.get(kind, "", "w") for kind in store.storage.kinds() if kind.group}
    assert "spec" not in stored["x.io"]
    assert stored["y.io"]["spec"] == {"weight": 2}
