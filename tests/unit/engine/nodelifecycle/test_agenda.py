"""Which passes happen, and which nodes they look at."""

from __future__ import annotations

import pytest

from fairlead.engine.nodelifecycle.agenda import Agenda
from fairlead.engine.nodelifecycle.beat import Beat


@pytest.fixture
def agenda():
    return Agenda(Beat(0, 5))


def test_nothing_changes_so_nothing_happens(agenda):
    assert agenda.next_pass() is None


def test_a_change_is_for_the_next_pass(agenda):
    agenda.note("b", 12)
    agenda.note("a", 13)
    assert agenda.next_pass() == 15
    assert agenda.begin(15) == ["a", "b"]
    assert agenda.next_pass() is None


def test_a_change_at_the_instant_of_a_pass_is_for_that_pass_unless_it_has_happened(agenda):
    agenda.note("a", 10)
    assert agenda.next_pass() == 10
    agenda.begin(10)
    agenda.note("a", 10)
    assert agenda.next_pass() == 15


def test_a_plan_is_kept(agenda):
    agenda.plan("a", 20)
    agenda.plan("b", 25)
    assert agenda.next_pass() == 20
    assert agenda.begin(20) == ["a"]
    assert agenda.begin(25) == ["b"]


def test_a_plan_may_be_brought_forward(agenda):
    agenda.plan("a", 50)
    agenda.plan("a", 20)
    assert agenda.begin(20) == ["a"]
    assert agenda.begin(50) == []


def test_a_plan_may_be_put_off(agenda):
    """The pass at the old instant finds out, and waits for the new one."""
    agenda.plan("a", 20)
    agenda.plan("a", 50)
    assert agenda.begin(20) == []
    assert agenda.next_pass() == 50
    assert agenda.begin(50) == ["a"]


def test_a_plan_may_be_given_up(agenda):
    agenda.plan("a", 20)
    agenda.plan("a", None)
    assert agenda.begin(20) == []
    assert agenda.next_pass() is None


def test_who_is_noted_and_planned_is_looked_at_once(agenda):
    agenda.plan("a", 20)
    agenda.note("a", 17)
    assert agenda.begin(20) == ["a"]
