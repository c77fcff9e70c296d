"""NoExecuteTaintMode: the taint that a node gets when the queue of its zone accepts it."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.engine.nodelifecycle.eviction.no_execute_taint_mode import (
    NO_CONDITION_RETRY,
    NoExecuteTaintMode,
)
from fairlead.engine.nodelifecycle.node_edit import TaintNoExecute, UntaintNoExecute
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE

NOW = 1_000_000_000_000


class Calls(list):
    """A queue and a writer that record their calls."""

    def finish(self, name):
        self.append(("finish", name))

    def retry(self, name, due):
        self.append(("retry", name, due))

    def submit(self, name, edits, now):
        self.append((name, *edits))
        return ["written"]


@pytest.fixture
def mode_of():
    """Makes modes that know one node, or none; returns the mode and its calls."""

    def make(status):
        conditions = [] if status == "none" else [{"type": "Ready", "status": status}]
        meta = {"name": "n1", "uid": "u"}
        node = decode_as(Node, {"metadata": meta, "status": {"conditions": conditions}})
        calls = Calls()
        found = None if status == "gone" else node
        mode = NoExecuteTaintMode({"a": calls}, calls, lambda _name: found, requeues=True)
        return mode, calls

    return make


@pytest.mark.parametrize(
    ("status", "key", "other"),
    [("False", NOT_READY, UNREACHABLE), ("Unknown", UNREACHABLE, NOT_READY)],
)
def test_a_node_gets_the_taint_of_its_ready_condition(mode_of, status, key, other):
    """The taint replaces the taint of the other condition."""
    mode, calls = mode_of(status)
    assert mode.process("a", "n1", NOW) == ["written"]
    edits = (TaintNoExecute(key, is_rate_limited=True), UntaintNoExecute(other))
    assert calls == [("finish", "n1"), ("n1", *edits)]


@pytest.mark.parametrize("status", ["True", "gone"])
def test_a_ready_or_deleted_node_gets_no_taint(mode_of, status):
    mode, calls = mode_of(status)
    assert mode.process("a", "n1", NOW) == []
    assert calls == [("finish", "n1")]


def test_a_node_without_a_ready_condition_is_retried_soon(mode_of):
    mode, calls = mode_of("none")
    assert mode.process("a", "n1", NOW) == []
    assert calls == [("retry", "n1", NOW + NO_CONDITION_RETRY + 1)]
