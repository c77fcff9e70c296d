"""Diagnosis: the statuses of a failed cycle, and the message for users."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.core.status import SUCCESS, Code, Status, unresolvable, unschedulable
from fairlead.engine.framework.diagnosis import Diagnosis, fit_error, histogram
from fairlead.engine.state.node_table import NodeTable
from fairlead.testing.builders import make_node

CPU = unschedulable("Insufficient cpu").by("Fit")
BOTH = unschedulable("Insufficient cpu", "Insufficient memory").by("Fit")
TAINT = unresolvable("node(s) had untolerated taint(s)").by("Taints")


def diagnosis(codes, statuses=(SUCCESS, CPU, BOTH, TAINT), **more):
    """A diagnosis with a node for each code; a negative code is a node excluded by name."""
    table = NodeTable()
    for number in range(len(codes)):
        table.put_node(make_node(f"n{number}"))
    rows = np.arange(len(codes))
    return Diagnosis(table, rows, np.array(codes, np.int32), statuses, **more)


@pytest.mark.parametrize(
    ("found", "post_filter", "text"),
    [
        (diagnosis([1, 1, 3]), "", ("0/3 nodes are available: 1 node(s) had untolerated taint(s), "
         "2 Insufficient cpu.")),
        (diagnosis([1, 2]), "", ("0/2 nodes are available: 1 Insufficient memory, "
         "2 Insufficient cpu.")),
        (diagnosis([3] * 2 + [1] * 10), "", ("0/12 nodes are available: 10 Insufficient cpu, "
         "2 node(s) had untolerated taint(s).")),
        (diagnosis([1]), "preemption: no.", ("0/1 nodes are available: 1 Insufficient cpu. "
         "preemption: no.")),
        (diagnosis([1, -1, -1], restricting=("A", "B")), "", ("0/3 nodes are available: "
         "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [A B].")),
        (diagnosis([-1, -1], pre_filter=unresolvable("no", "never").by("A")), "not found",
         "0/2 nodes are available: no, never. not found"),
        (diagnosis([]), "whatever", "no nodes available to schedule pods"),
    ],
    ids=[
        "counted", "several reasons of one node", "sorted as text", "with preemption's part",
        "excluded by name", "refused as a whole", "no nodes",
    ],
)  # fmt: skip
def test_the_fit_error_message(found, post_filter, text):
    """upstream: FitError.Error"""
    assert fit_error(found, post_filter) == text


def test_a_message_without_reasons_ends_with_the_colon():
    """Reasons without text are not counted."""
    assert fit_error(diagnosis([1], (SUCCESS, Status(Code.UNSCHEDULABLE, (), "A"))), "") == (
        "0/1 nodes are available:"
    )
    assert histogram(iter(())) == ""


def test_the_status_of_each_row():
    """Excluded nodes have the restriction's status; a PreFilter status applies to all nodes."""
    found = diagnosis([1, 3, -1], restricting=("A",))
    assert [found.status_of(row) for row in (0, 1)] == [CPU, TAINT]
    assert found.status_of(2).reasons == ("node(s) didn't satisfy plugin(s) [A]",)
    assert found.status_of(2).plugin == ""
    refused = diagnosis([-1, -1], pre_filter=TAINT)
    assert [refused.status_of(row) for row in (0, 1)] == [TAINT, TAINT]


@pytest.mark.parametrize(
    ("found", "helped", "hopeless"),
    [
        (diagnosis([1, 3, 2, -1], restricting=("A",)), [0, 2], [1]),
        (diagnosis([-1, -1], pre_filter=TAINT), [], [0, 1]),
        (diagnosis([-1, -1], pre_filter=CPU), [0, 1], []),
    ],
    ids=["by node", "refused for good", "refused for now"],
)
def test_on_which_nodes_preemption_may_help(found, helped, hopeless):
    """Only nodes whose status may change if pods are removed."""
    assert found.rows_with(Code.UNSCHEDULABLE).tolist() == helped
    assert found.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == hopeless


@pytest.mark.parametrize(
    ("found", "plugin", "rows"),
    [
        (diagnosis([1, 0, 3, 2, -1], restricting=("A",)), "Fit", [0, 3]),
        (diagnosis([-1, -1], pre_filter=TAINT), "Taints", [0, 1]),
        (diagnosis([-1, -1], pre_filter=TAINT), "Fit", []),
    ],
    ids=["by node", "by the PreFilter", "by another PreFilter"],
)
def test_the_rows_that_a_plugin_rejected(found, plugin, rows):
    """Accepted and excluded nodes are not among them."""
    assert found.rows_rejected_by({plugin}).tolist() == rows


def test_rejectors_are_plugins_that_rejected_or_excluded_nodes():
    """Sorted by name; plugins without an affected node are left out."""
    assert diagnosis([1, 1]).plugins() == ("Fit",)
    assert diagnosis([3, 1, -1], restricting=("A",)).plugins() == ("A", "Fit", "Taints")
    assert diagnosis([-1], pre_filter=TAINT).plugins() == ("Taints",)
