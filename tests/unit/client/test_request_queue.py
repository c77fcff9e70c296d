"""The request queue: order, rate and number of requests in flight."""

from __future__ import annotations

from fairlead.client.request_queue import RequestLimits, RequestQueue

SECOND = 1_000_000_000


def make(qps=0.0, burst=100, in_flight_max=64):
    return RequestQueue(RequestLimits(qps, burst, in_flight_max), 0)


def items(taken):
    return [item for item, _ in taken]


def test_requests_are_sent_in_the_order_of_priority():
    queue = make()
    for name, priority in (("event", 2), ("patch", 1), ("bind", 0)):
        queue.add(name, priority, name)
    assert items(queue.pop_ready(0)) == ["bind", "patch", "event"]


def test_requests_about_the_same_object_are_sent_sequentially():
    queue = make()
    queue.add("patch", 1, "pod a")
    queue.add("delete", 0, "pod a")
    queue.add("other", 1, "pod b")
    assert items(queue.pop_ready(0)) == ["patch", "other"]
    queue.finish("pod a")
    assert items(queue.pop_ready(0)) == ["delete"]
    queue.finish("pod a")
    queue.finish("pod b")
    assert len(queue) == 0


def test_the_rate_is_limited_after_a_burst():
    queue = make(qps=10, burst=2)
    for number in range(5):
        queue.add(number, 0, str(number))
    assert items(queue.pop_ready(0)) == [0, 1]
    assert queue.next_due() == SECOND // 10 + 1
    assert items(queue.pop_ready(SECOND // 10 + 1)) == [2]
    assert items(queue.pop_ready(SECOND)) == [3, 4]


def test_the_number_of_requests_in_flight_is_limited():
    queue = make(in_flight_max=2)
    for number in range(3):
        queue.add(number, 0, str(number))
    assert items(queue.pop_ready(0)) == [0, 1]
    assert queue.next_due() is None
    queue.finish("0")
    assert queue.next_due() == 0
    assert items(queue.pop_ready(0)) == [2]


def test_a_clock_that_is_set_back_removes_no_token():
    queue = make(qps=1, burst=1)
    queue.add("a", 0, "a")
    assert items(queue.pop_ready(-SECOND)) == ["a"]
