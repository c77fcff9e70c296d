"""The order of nodes in the queue of a zone, and the instants at which they are accepted."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.zones.token_bucket import NeverLimiter, TokenBucket
from fairlead.engine.nodelifecycle.zones.zone_queues import RateLimitedQueue, ZoneQueues


@pytest.fixture
def queue():
    return RateLimitedQueue(TokenBucket(0.1, 0))


def drained(queue, last_pass=100):
    order = []
    while (name := queue.head(last_pass)) is not None:
        queue.finish(name)
        order.append(name)
    return order


def test_entries_with_a_due_time_are_sorted_by_time_and_name(queue):
    for name, due in (("c", 5), ("b", 7), ("a", 7)):
        queue.add(name, due)
    assert len(queue) == 3
    assert drained(queue) == ["c", "a", "b"]


def test_entries_requeued_in_each_pass_are_due_at_the_last_pass(queue):
    queue.requeue_each_pass("z")
    queue.requeue_each_pass("a")
    queue.add("old", 90)
    queue.add("new", 100)
    assert drained(queue, last_pass=100) == ["old", "a", "new", "z"]


def test_an_entry_that_is_requeued_no_more_is_due_at_its_last_requeuing(queue):
    queue.requeue_each_pass("a")
    queue.requeue_each_pass("b")
    queue.stop_requeuing("b", 95)
    assert (queue.due_of("a"), queue.due_of("b")) == (None, 95)
    assert drained(queue, last_pass=100) == ["b", "a"]


def test_only_requeued_entries_can_stop_being_requeued(queue):
    queue.add("a", 5)
    queue.stop_requeuing("a", 95)
    queue.stop_requeuing("unknown", 95)
    assert queue.due_of("a") == 5
    assert not queue.is_known("unknown")


def test_a_handled_entry_is_not_added_again_before_its_removal(queue):
    queue.add("a", 1)
    assert drained(queue) == ["a"]
    queue.add("a", 2)
    assert (len(queue), queue.is_known("a")) == (0, True)
    queue.remove("a")
    queue.add("a", 3)
    assert queue.due_of("a") == 3


def test_a_handled_entry_is_pending_again_when_it_is_requeued(queue):
    queue.mark_handled("a")
    queue.requeue_each_pass("a")
    queue.requeue_each_pass("a")
    assert drained(queue) == ["a"]


def test_an_entry_loses_its_due_time_when_it_is_requeued_in_each_pass(queue):
    queue.add("b", 5)
    queue.add("a", 6)
    queue.requeue_each_pass("b")
    assert queue.due_of("b") is None
    assert drained(queue, last_pass=100) == ["a", "b"]


def test_remove_deletes_both_kinds_of_entries(queue):
    queue.add("a", 1)
    queue.requeue_each_pass("b")
    queue.remove("a")
    queue.remove("b")
    queue.remove("c")
    assert queue.head(5) is None


def test_an_entry_that_failed_is_retried_at_the_given_time(queue):
    queue.add("a", 1)
    queue.add("b", 2)
    queue.retry("a", 3)
    assert drained(queue) == ["b", "a"]
    queue.retry("a", 4)
    assert drained(queue) == ["a"]


# --- the rate ----------------------------------------------------------------------------------


def test_a_limiter_of_the_same_rate_is_kept(queue):
    before = queue.limiter
    queue.swap_limiter(0.1, 0.0, 5)
    assert queue.limiter is before


@pytest.mark.parametrize("is_exhausted", [True, False])
def test_a_new_limiter_is_exhausted_if_the_old_one_was(queue, is_exhausted):
    if is_exhausted:
        queue.limiter.try_accept(0)
    queue.swap_limiter(0.01, 0.0, 5)
    assert queue.limiter.try_accept(5) is not is_exhausted


def test_after_a_stop_the_first_token_is_available_after_its_interval(queue):
    queue.swap_limiter(0.0, 0.0, 0)
    assert isinstance(queue.limiter, NeverLimiter)
    queue.swap_limiter(0.1, 0.0, 0)
    assert not queue.limiter.try_accept(seconds(9.9))
    assert queue.limiter.try_accept(seconds(10))


@pytest.mark.parametrize(("never_rate", "is_accepted"), [(0.0, True), (1.0, False)])
def test_a_stopped_limiter_with_the_rate_one_is_not_replaced_by_a_rate_of_one(
    never_rate, is_accepted
):
    queue = RateLimitedQueue(TokenBucket(1.0, 0))
    queue.swap_limiter(0.0, never_rate, 0)
    queue.swap_limiter(1.0, never_rate, 0)
    assert queue.limiter.try_accept(seconds(5)) is is_accepted


# --- the queues of all zones -------------------------------------------------------------------


TICK = seconds(0.05)


@pytest.fixture
def queues():
    def build(**options):
        return ZoneQueues(NodeLifecycleConfig(**options), Period(TICK, 2 * TICK))

    return build


def processed(queues, now, last_pass=0):
    found = []
    for zone, name in queues.accepted(now, last_pass):
        queues[zone].finish(name)
        found.append((zone, name))
    return found


def test_every_zone_has_its_own_rate(queues):
    both = queues()
    for zone in ("b", "a"):
        both.open(zone, 0)
        both[zone].add(f"{zone}1", 0)
        both[zone].add(f"{zone}2", 0)
    assert processed(both, TICK) == [("a", "a1"), ("b", "b1")]
    assert both.next_attempt(TICK) == seconds(10) + TICK
    assert processed(both, seconds(10) + TICK) == [("a", "a2"), ("b", "b2")]


def test_an_empty_queue_has_no_next_attempt(queues):
    empty = queues()
    empty.open("a", 0)
    assert empty.next_attempt(0) is None
    assert processed(empty, TICK) == []


def test_a_queue_is_processed_once_per_period(queues):
    """An entry that is added at the instant of a finished pass waits for the next period."""
    both = queues(node_eviction_rate=1e8)
    both.open("a", 0)
    both["a"].add("a1", 0)
    assert processed(both, TICK) == [("a", "a1")]
    both["a"].add("a2", TICK)
    assert both.next_attempt(TICK) == 3 * TICK


def test_a_queue_without_entries_is_also_processed_once_per_period(queues):
    both = queues()
    for zone in ("a", "b"):
        both.open(zone, 0)
    both["a"].add("a1", 0)
    assert processed(both, TICK) == [("a", "a1")]
    both["b"].add("b1", TICK)
    assert both.next_attempt(TICK) == 3 * TICK


def test_an_entry_that_is_due_now_is_accepted(queues):
    one = queues()
    one.open("a", 0)
    one["a"].add("a1", TICK)
    assert processed(one, TICK) == [("a", "a1")]


def test_an_entry_that_is_not_due_also_spends_a_token(queues):
    both = queues()
    both.open("a", 0)
    both["a"].add("later", TICK + 1)
    assert processed(both, TICK) == []
    assert both.next_attempt(TICK) == seconds(10) + TICK


@pytest.mark.parametrize(
    ("defects", "found"), [(DefectPolicy.FIXED, None), (DefectPolicy.UPSTREAM, TICK)]
)
def test_a_rate_of_zero_gives_no_token_except_in_upstream(queues, defects, found):
    stopped = queues(node_eviction_rate=0.0, defects=defects)
    stopped.open("a", 0)
    stopped["a"].add("a1", 0)
    assert stopped.next_attempt(0) == found


def test_opening_a_zone_again_drops_its_entries(queues):
    one = queues()
    one.open("a", 0)
    one["a"].add("a1", 0)
    assert one.has("a")
    one.open("a", 0)
    assert not one["a"].is_known("a1")
