"""Pods of nodes that are no longer ready."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.pod_marking import PodMarking

REF = ObjectRef("Pod", "default", "p1", "uid-p1")


@pytest.fixture
def marking():
    return PodMarking(reports=True)


def ready(status="True", reason="R"):
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "m"}]}


def test_a_ready_pod_is_marked_with_its_reason_as_it_was(marking, given):
    (mark,) = marking.mark([given.pod(status=ready())])
    assert mark == PatchStatus(REF, conditions=(Condition("Ready", "False", "R", "m"),))


def test_an_unknown_pod_is_marked_too(marking, given):
    assert marking.mark([given.pod(status=ready("Unknown"))])


@pytest.mark.parametrize("status", [ready("False"), {"conditions": []}], ids=["unready", "bare"])
def test_other_pods_are_left_alone(marking, given, status):
    assert marking.mark([given.pod(status=status)]) == []


def test_the_event_follows_the_mark(marking, given):
    (mark,) = marking.mark([given.pod()])
    event = RecordEvent(REF, "Warning", "NodeNotReady", "", "Node is not ready", "node-controller")
    assert marking.settle(CommandSucceeded(mark)) == [event]
    assert marking.settle(CommandSucceeded(mark)) == []


def test_a_pod_that_is_gone_is_passed_over(marking, given):
    (mark,) = marking.mark([given.pod()])
    assert marking.settle(CommandFailed(mark, FailureReason.NOT_FOUND, "")) == []
    assert marking.to_repeat == {}


def test_a_mark_that_was_refused_is_to_be_repeated(marking, given):
    (mark,) = marking.mark([given.pod()])
    assert len(marking.settle(CommandFailed(mark, FailureReason.INTERNAL_ERROR, ""))) == 1
    assert list(marking.to_repeat) == ["n1"]


def test_old_versions_tell_nobody(given):
    marking = PodMarking(reports=False)
    (mark,) = marking.mark([given.pod()])
    assert marking.settle(CommandSucceeded(mark)) == []


def test_what_others_write_is_theirs(marking, given):
    marking.mark([given.pod()])
    assert marking.settle(CommandSucceeded(PatchStatus(REF, {"phase": "Failed"}))) == []
