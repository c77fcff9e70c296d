"""Which keys a controller is to look at, and when."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.work_queue import BURST_MAX, REST, WorkQueue

A, B = ("default", "a"), ("default", "b")
NOW = seconds(100)


@pytest.fixture
def queue():
    return WorkQueue(WorkloadsConfig())


def test_each_key_is_taken_once_in_the_order_in_which_they_came(queue):
    for key in (B, A, B):
        queue.add(key)
    assert queue.next_due() == 0
    assert list(queue.take(NOW)) == [B, A]
    assert (queue.next_due(), list(queue.take(NOW))) == (None, [])


def test_what_comes_while_keys_are_taken_is_for_the_next_time(queue):
    queue.add(A)
    for key in queue.take(NOW):
        queue.add(key)
    assert list(queue.take(NOW)) == [A]


def test_what_was_refused_comes_again_later(queue):
    queue.refused(A, NOW)
    due = queue.next_due()
    assert due > NOW
    assert list(queue.take(due - 1)) == []
    assert list(queue.take(due)) == [A]


def test_refusals_that_are_forgotten_do_not_count(queue):
    waits = []
    for is_forgotten in (False, False, True):
        if is_forgotten:
            queue.forget(A)
        queue.refused(A, NOW)
        waits.append(queue.next_due() - NOW)
        list(queue.take(queue.next_due()))
    assert waits[0] == waits[2] < waits[1]


def test_what_was_written_too_often_at_one_instant_rests(queue):
    queue.wrote(A, NOW, BURST_MAX - 1)
    assert not queue.rests(A, NOW)
    queue.wrote(A, NOW, 1)
    assert queue.rests(A, NOW)
    assert not queue.rests(B, NOW)
    assert list(queue.take(NOW + REST)) == [A]
    assert not queue.rests(A, NOW + REST)
