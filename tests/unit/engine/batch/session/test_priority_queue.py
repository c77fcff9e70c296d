"""Both queues serve by key; one of them does not notice when keys change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.batch.session.priority_queue import FreshQueue, PriorityQueue


def drain(queue):
    return [queue.pop() for _ in range(len(queue))]


@given(st.lists(st.integers(), unique=True))
def test_with_keys_that_stay_both_sort(items):
    for kind in (PriorityQueue, FreshQueue):
        queue = kind(lambda item: item)
        for item in items:
            queue.push(item)
        assert drain(queue) == sorted(items)


def test_a_heap_does_not_notice_a_key_that_changed():
    shares = {"a": 1, "b": 2, "c": 3}
    stale, fresh = PriorityQueue(shares.get), FreshQueue(shares.get)
    for name in shares:
        stale.push(name)
        fresh.push(name)
    shares["c"] = 0
    assert (stale.pop(), fresh.pop()) == ("a", "c")
