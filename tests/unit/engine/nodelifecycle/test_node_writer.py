"""Writes to a node are sent one after the other."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Node, NodeStatus, ObjectMeta
from fairlead.engine.core.command import PatchObject
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.node_edit import AddNoSchedule, TaintNoExecute, UntaintNoExecute
from fairlead.engine.nodelifecycle.node_writer import EditOutcome, NodeWriter

A = TaintNoExecute("a", is_rate_limited=False)
B = TaintNoExecute("b", is_rate_limited=False)


class Nodes:
    """The newest known nodes; `taint` is the state after a performed write."""

    def __init__(self):
        self.known = {"n": Node(metadata=ObjectMeta(name="n", resource_version="1"))}

    def find(self, name):
        return self.known.get(name)

    def change(self, version, node=None):
        node = node or self.known["n"]
        metadata = ObjectMeta(name="n", resource_version=version)
        self.known["n"] = Node(metadata=metadata, spec=node.spec, status=node.status)


@pytest.fixture
def nodes():
    return Nodes()


@pytest.fixture
def writer(nodes):
    return NodeWriter(nodes.find)


def keys(commands):
    (command,) = commands
    assert isinstance(command, PatchObject)
    return [taint["key"] for taint in command.patch["spec"]["taints"]]


def test_the_second_write_waits_for_the_first(writer, nodes):
    first = writer.submit("n", (A, B), 0)
    assert keys(first) == ["a"]
    assert writer.observe_node("n", 0) == []
    assert writer.on_outcome(CommandSucceeded(first[0])) == EditOutcome("n", A, None)
    nodes.change("2")
    assert keys(writer.observe_node("n", 0)) == ["b"]


def test_a_write_without_changes_is_skipped(writer):
    assert keys(writer.submit("n", (UntaintNoExecute("x"), A), 0)) == ["a"]


def test_a_write_is_computed_again_after_a_conflict(writer, nodes):
    (sent,) = writer.submit("n", (A,), 0)
    conflict = CommandFailed(sent, FailureReason.CONFLICT, "")
    assert writer.on_outcome(conflict) == EditOutcome("n", A, FailureReason.CONFLICT, is_over=False)
    assert writer.observe_node("n", 0) == []  # as long as no newer version is known
    nodes.change("2")
    (again,) = writer.observe_node("n", 0)
    assert again.patch["metadata"] == {"resourceVersion": "2"}


def test_other_failures_end_a_write(writer):
    (sent,) = writer.submit("n", (A, B), 0)
    refused = CommandFailed(sent, FailureReason.INTERNAL_ERROR, "")
    assert writer.on_outcome(refused) == EditOutcome("n", A, FailureReason.INTERNAL_ERROR)
    assert keys(writer.observe_node("n", 0)) == ["b"]


def test_a_pending_edit_that_depends_on_the_state_is_not_queued_twice(writer, nodes):
    nodes.change("2", Node(status=NodeStatus()))
    writer.submit("n", (A, AddNoSchedule()), 0)
    writer.submit("n", (AddNoSchedule(), A), 0)
    pending = writer._pending["n"]
    assert list(pending.edits) == [A, AddNoSchedule(), A]


def test_a_deleted_node_is_not_written(writer, nodes):
    (sent,) = writer.submit("n", (A, B), 0)
    writer.forget("n")
    assert writer.on_outcome(CommandSucceeded(sent)) is None
    del nodes.known["n"]
    assert writer.submit("n", (A,), 0) == []
    assert writer.observe_node("n", 0) == []


def test_outcomes_of_other_commands_are_ignored(writer):
    (sent,) = writer.submit("n", (A,), 0)
    other = PatchObject(sent.target, {"spec": {"unschedulable": True}})
    assert writer.on_outcome(CommandSucceeded(other)) is None
