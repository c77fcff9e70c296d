"""WorkQueue: the keys that a controller has to sync, and when."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import DeleteObject, ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.work_queue import BURST_DELAY, BURST_MAX, WorkQueue

A, B = ("default", "a"), ("default", "b")
NOW = seconds(100)


@pytest.fixture
def queue():
    return WorkQueue(WorkloadsConfig())


def test_each_key_is_taken_once_in_insertion_order(queue):
    for key in (B, A, B):
        queue.add(key)
    assert queue.next_due() == 0
    assert list(queue.pop_due(NOW)) == [B, A]
    assert (queue.next_due(), list(queue.pop_due(NOW))) == (None, [])


def test_keys_added_while_keys_are_taken_are_taken_next_time(queue):
    queue.add(A)
    for key in queue.pop_due(NOW):
        queue.add(key)
    assert list(queue.pop_due(NOW)) == [A]


def write(queue, key, names="x"):
    """Issue one write for each letter of `names`."""
    queue.sent(key, [DeleteObject(ref(name), why="") for name in names], NOW)


def ref(name):
    return ObjectRef("EndpointSlice", "default", name)


def refuse(queue, now):
    write(queue, A)
    queue.record_outcome(ref("x"), now)


def test_a_key_is_retried_after_a_refused_write(queue):
    refuse(queue, NOW)
    due = queue.next_due()
    assert due > NOW
    assert list(queue.pop_due(due - 1)) == []
    assert list(queue.pop_due(due)) == [A]


def test_forgotten_failures_do_not_count(queue):
    waits = []
    for is_forgotten in (False, False, True):
        if is_forgotten:
            queue.forget(A)
        refuse(queue, NOW)
        waits.append(queue.next_due() - NOW)
        list(queue.pop_due(queue.next_due()))
    assert waits[0] == waits[2] < waits[1]


def test_a_success_resets_the_failures(queue):
    refuse(queue, NOW)
    first = queue.next_due()
    list(queue.pop_due(first))
    write(queue, A)
    queue.record_outcome(ref("x"), None)
    refuse(queue, NOW)
    assert queue.next_due() == first


@pytest.mark.parametrize("outcomes", [(NOW, None), (None, NOW), (NOW, NOW)])
def test_a_sync_with_any_refused_write_counts_as_one_failure(queue, outcomes):
    waits = []
    for _ in range(2):
        write(queue, A, "xy")
        for name, refused_at in zip("xy", outcomes, strict=True):
            queue.record_outcome(ref(name), refused_at)
        waits.append(queue.next_due() - NOW)
        assert list(queue.pop_due(queue.next_due())) == [A]
        assert queue.next_due() is None
    assert waits[1] == 2 * waits[0]


def test_a_key_is_not_taken_while_its_writes_are_in_flight(queue):
    write(queue, A, "xy")
    queue.add(A)
    assert list(queue.pop_due(NOW)) == []
    queue.record_outcome(ref("x"), None)
    assert (queue.is_pending(A), list(queue.pop_due(NOW))) == (True, [])
    queue.record_outcome(ref("y"), None)
    assert (queue.is_pending(A), list(queue.pop_due(NOW))) == (False, [A])


def test_an_outcome_does_not_queue_an_unchanged_key(queue):
    write(queue, A)
    queue.record_outcome(ref("x"), None)
    assert list(queue.pop_due(NOW)) == []


def test_outcomes_of_other_and_forgotten_writes_are_ignored(queue):
    queue.record_outcome(ref("x"), NOW)
    write(queue, A)
    queue.forget(A)
    queue.record_outcome(ref("x"), NOW)
    assert (queue.next_due(), queue.is_pending(A)) == (None, False)


def test_a_key_written_too_often_at_one_instant_is_delayed(queue):
    for _ in range(BURST_MAX):
        write(queue, A)
        queue.record_outcome(ref("x"), None)
    queue.add(A)
    queue.add(B)
    assert list(queue.pop_due(NOW)) == [B]
    assert list(queue.pop_due(NOW + BURST_DELAY)) == [A]
