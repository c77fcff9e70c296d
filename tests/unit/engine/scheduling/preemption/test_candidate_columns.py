"""The results of dry runs by row: candidates, and how many rows each reason refuses."""

from __future__ import annotations

import numpy as np

from fairlead.engine.core.status import unschedulable
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.scheduling.preemption.candidate_columns import CandidateColumns
from fairlead.engine.scheduling.preemption.policy import RULES
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene

FULL, CLOSED = unschedulable("full"), unschedulable("closed")


def rows(*numbers):
    return np.array(numbers, np.int64)


def columns_of_refused(capacity):
    """Columns in which row 0 is full and the other rows are closed."""
    columns = CandidateColumns(capacity, RULES)
    columns.refuse(rows(0), FULL)
    columns.refuse(rows(*range(1, capacity)), CLOSED)
    return columns


def test_rows_are_counted_by_the_reason_that_refuses_them():
    columns = columns_of_refused(5)
    assert dict(columns.refusal_counts(rows(0, 1, 2, 3, 4))) == {FULL: 1, CLOSED: 4}
    assert dict(columns.refusal_counts(rows(2, 4))) == {CLOSED: 2}
    assert columns.count(rows(0, 1, 2, 3, 4)) == 0


def test_candidates_have_no_reason():
    """Whether their victims are known or only their costs."""
    columns = columns_of_refused(5)
    columns.put_costs(rows(1, 2), np.zeros((len(RULES), 2), np.int64))
    scene = PluginScene(nodes=[make_node("n")])
    scene.add(make_pod("p", node="n"))
    node = scene.cluster.table.find("n")
    columns.put(3, Candidate(node, tuple(node.pods.values()), 0))
    everywhere = rows(0, 1, 2, 3, 4)
    assert dict(columns.refusal_counts(everywhere)) == {FULL: 1, CLOSED: 1}
    assert columns.count(everywhere) == 3
    assert columns.count(rows(0, 1)) == 1
    assert columns.rows(everywhere) == [1, 2, 3]
    assert not columns.unknown.any()
