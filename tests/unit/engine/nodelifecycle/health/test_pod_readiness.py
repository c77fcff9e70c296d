"""Pods on nodes that are no longer ready are marked as not ready."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.health.pod_readiness import NotReadyMarker

REF = ObjectRef("Pod", "default", "p1", "uid-p1")


@pytest.fixture
def not_ready_marker():
    return NotReadyMarker(reports=True)


def ready(status="True", reason="R"):
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "m"}]}


def test_a_marked_pod_keeps_the_reason_of_its_condition(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod(status=ready())])
    assert mark == PatchStatus(REF, conditions=(Condition("Ready", "False", "R", "m"),))


def test_a_pod_with_ready_unknown_is_also_marked(not_ready_marker, given):
    assert not_ready_marker.mark([given.pod(status=ready("Unknown"))])


@pytest.mark.parametrize("status", [ready("False"), {"conditions": []}], ids=["unready", "bare"])
def test_other_pods_are_not_marked(not_ready_marker, given, status):
    assert not_ready_marker.mark([given.pod(status=status)]) == []


def test_the_event_follows_the_status_write(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    event = RecordEvent(REF, "Warning", "NodeNotReady", "", "Node is not ready", "node-controller")
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == [event]
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == []


def test_a_deleted_pod_is_skipped(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    assert not_ready_marker.on_outcome(CommandFailed(mark, FailureReason.NOT_FOUND, "")) == []
    assert not_ready_marker.nodes_to_retry == {}


def test_a_refused_status_write_is_to_be_repeated(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    assert (
        len(not_ready_marker.on_outcome(CommandFailed(mark, FailureReason.INTERNAL_ERROR, ""))) == 1
    )
    assert list(not_ready_marker.nodes_to_retry) == ["n1"]


def test_old_versions_create_no_event(given):
    not_ready_marker = NotReadyMarker(reports=False)
    (mark,) = not_ready_marker.mark([given.pod()])
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == []


def test_status_writes_of_other_components_are_ignored(not_ready_marker, given):
    not_ready_marker.mark([given.pod()])
    assert (
        not_ready_marker.on_outcome(CommandSucceeded(PatchStatus(REF, {"phase": "Failed"}))) == []
    )
