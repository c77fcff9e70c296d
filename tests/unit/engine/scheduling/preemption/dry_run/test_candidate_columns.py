"""Dry-run results by row: the candidates, and the number of rows that each reason rejects."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.core.status import unschedulable
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.scheduling.preemption.dry_run.candidate_columns import CandidateColumns
from fairlead.engine.scheduling.preemption.pick import pick_one_node
from fairlead.engine.scheduling.preemption.policy import RULES
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

FULL, CLOSED = unschedulable("full"), unschedulable("closed")


def rows(*numbers):
    return np.array(numbers, np.int64)


def columns_of_refused(capacity):
    """Columns in which row 0 is full and the other rows are closed."""
    columns = CandidateColumns(capacity, RULES)
    columns.refuse(rows(0), FULL)
    columns.refuse(rows(*range(1, capacity)), CLOSED)
    return columns


def test_rejected_rows_are_counted_by_reason():
    columns = columns_of_refused(5)
    assert dict(columns.refusal_counts(rows(0, 1, 2, 3, 4))) == {FULL: 1, CLOSED: 4}
    assert dict(columns.refusal_counts(rows(2, 4))) == {CLOSED: 2}
    assert columns.count(rows(0, 1, 2, 3, 4)) == 0


def test_candidates_have_no_reason():
    """With known victims, and with costs only."""
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


# --- the best candidates ---------------------------------------------------------------------


def unkept(columns):
    """Return a copy of `columns` without cached results."""
    found = CandidateColumns(len(columns.unknown), RULES)
    found.is_candidate, found.costs = columns.is_candidate, columns.costs
    return found


class ChangingColumns:
    """Columns whose results change at random."""

    def __init__(self, capacity, chance):
        self.chance = chance
        self.columns = CandidateColumns(capacity, RULES)
        self.everywhere = np.arange(capacity)
        self.columns.refuse(self.everywhere, FULL)

    def change(self):
        """Store another result on some rows."""
        count = self.chance.of((1, 1, 2, 3, 20))
        some = sorted({self.chance.below(len(self.everywhere)) for _ in range(count)})
        if self.chance.one_in(3):
            self.columns.refuse(rows(*some), FULL)
            return
        costs = np.zeros((len(RULES), len(some)), np.int64)
        costs[1] = [self.chance.below(3) for _ in some]
        costs[4] = self.chance.below(2)
        self.columns.put_costs(rows(*some), costs)


@pytest.mark.parametrize("seed", range(30))
def test_cached_best_candidates_equal_those_of_a_new_search(seed):
    """Given any changes between searches, and other potential rows, the pick is the same."""
    chance = Chance(seed)
    life = ChangingColumns(40, chance)
    potential = life.everywhere
    reused = 0
    for _ in range(60):
        for _ in range(chance.of((0, 1, 1, 2, 9))):
            life.change()
        if chance.one_in(9):
            potential = rows(*(row for row in range(40) if not chance.one_in(4)))
        reused += bool(life.columns.best_of(potential))
        kept = pick_one_node(life.columns, potential)
        new = pick_one_node(unkept(life.columns), potential)
        assert (kept and (list(kept.rows), kept.rule)) == (new and (list(new.rows), new.rule))
        assert life.columns.count(potential) == unkept(life.columns).count(potential)
    assert reused > 10


def test_a_candidate_with_victims_is_compared_with_cached_candidates():
    """A changed node is evaluated by itself and stored in this way."""
    columns = columns_of_refused(5)
    columns.put_costs(rows(1, 2), np.array([[0, 0], [9, 9], [0, 0], [1, 1], [0, 0]]))
    everywhere = rows(0, 1, 2, 3, 4)
    assert list(pick_one_node(columns, everywhere).rows) == [1, 2]
    assert columns.count(everywhere) == 2
    scene = PluginScene(nodes=[make_node("n")])
    scene.add(make_pod("p", node="n", priority=5))
    node = scene.cluster.table.find("n")
    columns.put(3, Candidate(node, tuple(node.pods.values()), 0))
    assert list(pick_one_node(columns, everywhere).rows) == [3]
    assert columns.count(everywhere) == 3
    columns.put(3, FULL)
    assert list(pick_one_node(columns, everywhere).rows) == [1, 2]
    assert columns.count(everywhere) == 2


def test_unknown_rows_are_potential_rows_without_a_result():
    """In ascending order, and only among the potential rows."""
    columns = columns_of_refused(5)
    columns.unknown[[1, 4]] = True
    assert columns.unknown_rows(rows(0, 1, 2, 3, 4)).tolist() == [1, 4]
    assert columns.unknown_rows(rows(0, 4)).tolist() == [4]
