"""Both priority queues sort by key; only one of them notices changed keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.batch.session.priority_queue import PriorityQueue, UnsortedQueue


def drain(queue):
    return [queue.pop() for _ in range(len(queue))]


@given(st.lists(st.integers(), unique=True))
def test_both_queues_sort_by_constant_keys(items):
    for kind in (PriorityQueue, UnsortedQueue):
        queue = kind(lambda item: item)
        for item in items:
            queue.push(item)
        assert drain(queue) == sorted(items)


def test_a_heap_does_not_notice_a_changed_key():
    shares = {"a": 1, "b": 2, "c": 3}
    stale, fresh = PriorityQueue(shares.get), UnsortedQueue(shares.get)
    for name in shares:
        stale.push(name)
        fresh.push(name)
    shares["c"] = 0
    assert (stale.pop(), fresh.pop()) == ("a", "c")
