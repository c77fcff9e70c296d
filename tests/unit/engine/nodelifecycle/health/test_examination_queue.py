"""Which passes happen, and which nodes they look at."""

from __future__ import annotations

import pytest

from fairlead.engine.nodelifecycle.health.examination_queue import ExaminationQueue
from fairlead.engine.nodelifecycle.period import Period


@pytest.fixture
def examinations():
    return ExaminationQueue(Period(0, 5))


def test_nothing_changes_so_nothing_happens(examinations):
    assert examinations.next_pass() is None


def test_a_change_is_for_the_next_pass(examinations):
    examinations.add("b", 12)
    examinations.add("a", 13)
    assert examinations.next_pass() == 15
    assert examinations.begin_pass(15) == ["a", "b"]
    assert examinations.next_pass() is None


def test_a_change_at_the_instant_of_a_pass_is_for_that_pass_unless_it_has_happened(examinations):
    examinations.add("a", 10)
    assert examinations.next_pass() == 10
    examinations.begin_pass(10)
    examinations.add("a", 10)
    assert examinations.next_pass() == 15


def test_a_plan_is_kept(examinations):
    examinations.schedule("a", 20)
    examinations.schedule("b", 25)
    assert examinations.next_pass() == 20
    assert examinations.begin_pass(20) == ["a"]
    assert examinations.begin_pass(25) == ["b"]


def test_a_plan_may_be_brought_forward(examinations):
    examinations.schedule("a", 50)
    examinations.schedule("a", 20)
    assert examinations.begin_pass(20) == ["a"]
    assert examinations.begin_pass(50) == []


def test_a_plan_may_be_put_off(examinations):
    """The pass at the old instant finds nothing, and the new instant is kept."""
    examinations.schedule("a", 20)
    examinations.schedule("a", 50)
    assert examinations.begin_pass(20) == []
    assert examinations.next_pass() == 50
    assert examinations.begin_pass(50) == ["a"]


def test_a_plan_may_be_given_up(examinations):
    examinations.schedule("a", 20)
    examinations.schedule("a", None)
    assert examinations.begin_pass(20) == []
    assert examinations.next_pass() is None


def test_who_is_noted_and_planned_is_looked_at_once(examinations):
    examinations.schedule("a", 20)
    examinations.add("a", 17)
    assert examinations.begin_pass(20) == ["a"]
