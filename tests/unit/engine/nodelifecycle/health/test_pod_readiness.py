"""Pods of nodes that are no longer ready."""

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


def test_a_ready_pod_is_marked_with_its_reason_as_it_was(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod(status=ready())])
    assert mark == PatchStatus(REF, conditions=(Condition("Ready", "False", "R", "m"),))


def test_an_unknown_pod_is_marked_too(not_ready_marker, given):
    assert not_ready_marker.mark([given.pod(status=ready("Unknown"))])


@pytest.mark.parametrize("status", [ready("False"), {"conditions": []}], ids=["unready", "bare"])
def test_other_pods_are_left_alone(not_ready_marker, given, status):
    assert not_ready_marker.mark([given.pod(status=status)]) == []


def test_the_event_follows_the_mark(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    event = RecordEvent(REF, "Warning", "NodeNotReady", "", "Node is not ready", "node-controller")
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == [event]
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == []


def test_a_pod_that_is_gone_is_passed_over(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    assert not_ready_marker.on_outcome(CommandFailed(mark, FailureReason.NOT_FOUND, "")) == []
    assert not_ready_marker.nodes_to_retry == {}


def test_a_mark_that_was_refused_is_to_be_repeated(not_ready_marker, given):
    (mark,) = not_ready_marker.mark([given.pod()])
    assert (
        len(not_ready_marker.on_outcome(CommandFailed(mark, FailureReason.INTERNAL_ERROR, ""))) == 1
    )
    assert list(not_ready_marker.nodes_to_retry) == ["n1"]


def test_old_versions_tell_nobody(given):
    not_ready_marker = NotReadyMarker(reports=False)
    (mark,) = not_ready_marker.mark([given.pod()])
    assert not_ready_marker.on_outcome(CommandSucceeded(mark)) == []


def test_what_others_write_is_theirs(not_ready_marker, given):
    not_ready_marker.mark([given.pod()])
    assert (
        not_ready_marker.on_outcome(CommandSucceeded(PatchStatus(REF, {"phase": "Failed"}))) == []
    )
