"""Which passes run, and which nodes they examine."""

from __future__ import annotations

import pytest

from fairlead.engine.nodelifecycle.health.examination_queue import ExaminationQueue
from fairlead.engine.nodelifecycle.period import Period


@pytest.fixture
def examinations():
    return ExaminationQueue(Period(0, 5))


def test_without_a_change_no_pass_runs(examinations):
    assert examinations.next_pass() is None


def test_the_next_pass_examines_changed_nodes(examinations):
    examinations.add("b", 12)
    examinations.add("a", 13)
    assert examinations.next_pass() == 15
    assert examinations.begin_pass(15) == ["a", "b"]
    assert examinations.next_pass() is None


def test_a_change_at_the_instant_of_a_finished_pass_waits_for_the_next_one(examinations):
    examinations.add("a", 10)
    assert examinations.next_pass() == 10
    examinations.begin_pass(10)
    examinations.add("a", 10)
    assert examinations.next_pass() == 15


def test_a_pass_examines_the_nodes_scheduled_for_it(examinations):
    examinations.schedule("a", 20)
    examinations.schedule("b", 25)
    assert examinations.next_pass() == 20
    assert examinations.begin_pass(20) == ["a"]
    assert examinations.begin_pass(25) == ["b"]


def test_an_examination_may_be_rescheduled_to_an_earlier_pass(examinations):
    examinations.schedule("a", 50)
    examinations.schedule("a", 20)
    assert examinations.begin_pass(20) == ["a"]
    assert examinations.begin_pass(50) == []


def test_an_examination_may_be_rescheduled_to_a_later_pass(examinations):
    """The pass at the earlier instant examines no node."""
    examinations.schedule("a", 20)
    examinations.schedule("a", 50)
    assert examinations.begin_pass(20) == []
    assert examinations.next_pass() == 50
    assert examinations.begin_pass(50) == ["a"]


def test_a_scheduled_examination_may_be_cancelled(examinations):
    examinations.schedule("a", 20)
    examinations.schedule("a", None)
    assert examinations.begin_pass(20) == []
    assert examinations.next_pass() is None


def test_a_node_that_is_added_and_scheduled_is_examined_once(examinations):
    examinations.schedule("a", 20)
    examinations.add("a", 17)
    assert examinations.begin_pass(20) == ["a"]
