"""EntryQueue: pods are popped in the order of their keys, whatever their insertion order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.scheduling.queue.entry_queue import EntryQueue
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod, QueueName

# The steps: push a pod with a key (again, if it is queued), remove a pod, or pop.
STEPS = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 9), st.integers(0, 5)),
    st.tuples(st.just("leave"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("pop"), st.just(0), st.just(0)),
)


def queued_pod():
    return QueuedPod(info=None, timestamp=0, stamp=0)


@given(steps=st.lists(STEPS, max_size=60))
def test_the_queue_behaves_like_a_sorted_list(steps):
    """The first pod has the lowest (key, token) of all pods in the queue."""
    queue = EntryQueue(QueueName.ACTIVE)
    pods = [queued_pod() for _ in range(10)]
    plain = {}
    for token, (step, number, key) in enumerate(steps):
        match step:
            case "push":
                queue.push(pods[number], (key,), token)
                plain[number] = (key, token)
            case "leave":
                pods[number].place = QueueName.GONE
                plain.pop(number, None)
            case _:
                expected = min(plain, key=plain.get, default=None)
                found = queue.pop()
                assert found is (None if expected is None else pods[expected])
                if found is not None:
                    found.place = QueueName.IN_FLIGHT
                    del plain[expected]
        first = min(plain, key=plain.get, default=None)
        assert queue.first() is (None if first is None else pods[first])
    assert queue.count or not plain


def test_pods_added_in_order_need_no_heap():
    """So a removal does not read entries in distant memory."""
    queue = EntryQueue(QueueName.ACTIVE)
    pods = [queued_pod() for _ in range(3)]
    for token, pod in enumerate(pods):
        queue.push(pod, (0, token), token)
    assert not queue._heap
    assert [queue.pop() for _ in pods] == pods
    assert queue.pop() is None
