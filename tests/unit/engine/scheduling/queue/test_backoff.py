"""How long a pod waits after a failed attempt, and which attempts count.

upstream: pkg/scheduler/backend/queue/backoff_queue.go
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.scheduling.queue.backoff import BackoffClock, BackoffConfig

GATED = {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}}


def windows(waiting, count, plugins):
    """Return the backoff after each failed attempt, in whole seconds."""
    found, now = [], 0.0
    for _ in range(count):
        waiting.queue.activate("default/a", seconds(now))
        waiting.fail(now, plugins)
        found.append(waiting.find("a").window / seconds(1) - now)
        now += 20
    return found


def test_backoff_doubles_up_to_its_maximum(waiting):
    """The time that the pod waits does not reset it."""
    waiting.add("a")
    assert windows(waiting, 7, ["NodeResourcesFit"]) == [1, 2, 4, 8, 10, 10, 10]


@given(st.integers(0, seconds(30)), st.integers(0, seconds(30)), st.integers(1, 200))
def test_backoff_is_computed_without_a_loop(initial, maximum, count):
    """The result is that of upstream's loop (backoff_queue.go: calculateBackoffDuration)."""
    expected = initial
    for _ in range(count - 1):
        expected = min(2 * expected, maximum)
    clock = BackoffClock(BackoffConfig(initial=initial, maximum=maximum), window=1, phase=0)
    assert clock.expiry(7, count) == 7 + min(expected, maximum)


def test_backoff_is_configured(new_waiting):
    """The options are podInitialBackoffSeconds and podMaxBackoffSeconds."""
    waiting = new_waiting(initial=3, maximum=7)
    waiting.add("a")
    assert windows(waiting, 4, ["NodeResourcesFit"]) == [3, 6, 7, 7]


def test_errors_and_rejections_are_counted_separately(waiting):
    """An error leaves the count of rejections, a rejection ends a series of errors."""
    waiting.add("a")
    outcomes = [["F"], ["F"], [], [], ["F"], []]
    found = []
    for number, plugins in enumerate(outcomes):
        now = 100.0 * number
        waiting.queue.activate("default/a", seconds(now))
        waiting.fail(now, plugins)
        found.append(waiting.find("a").window / seconds(1) - now)
    assert found == [1, 2, 1, 2, 4, 1]


def test_a_pod_without_an_attempt_has_no_backoff(waiting):
    """This includes a pod that was gated at first."""
    waiting.add("a", 0, **GATED)
    waiting.update("a", 0.1, [EventKind.POD_GATES_GONE])
    assert (waiting.place("a"), waiting.pop(0.1)) == ("active", "a")


@pytest.mark.parametrize(
    ("woken_s", "place"),
    [(1.0, "backoff"), (1.99, "backoff"), (2.0, "active"), (7, "active")],
)
def test_backoff_runs_from_the_end_of_the_attempt(waiting, woken_s, place):
    """This holds in every queue; the expiry is truncated to seconds, and must be in the past."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.wake(woken_s)
    assert waiting.place("a") == place


def test_an_idle_scheduler_pops_pods_from_backoff(waiting):
    """The pod is popped immediately, however often it failed."""
    waiting.add("a")
    for attempt in range(1, 6):
        assert waiting.fail(0.5) == "a"
        waiting.wake(0.5)
        assert (waiting.place("a"), waiting.due_s()) == ("backoff", 0)
        assert waiting.find("a").attempts == attempt
    assert waiting.pop(0.5) == "a"


def test_no_failed_attempt_means_no_backoff(waiting):
    """Without a failed attempt, there is no backoff."""
    clock = waiting.queue._clock
    assert [clock.expiry(seconds(5), count) for count in (0, 1, 2)] == [
        0, seconds(6), seconds(7),
    ]  # fmt: skip


def test_active_pods_are_popped_before_pods_in_backoff(waiting):
    """Even active pods of lower priority are popped first, until the backoff has ended."""
    waiting.add("a", priority=9)
    waiting.fail(0.5)
    waiting.wake(0.6)
    waiting.add("b", 0.7)
    waiting.add("c", 0.8)
    assert waiting.pop(1.9) == "b"
    assert waiting.pop(2.0) == "a"
    assert waiting.pop(2.0) == "c"


def test_pods_whose_backoff_ends_in_the_same_second_are_popped_by_priority(waiting):
    """Backoff windows have this purpose; earlier windows come first."""
    for name, priority, at_s in (("a", 1, 0.9), ("b", 2, 1.1), ("c", 3, 1.2), ("d", 9, 2.0)):
        waiting.add(name, at_s, priority=priority)
        waiting.fail(at_s)
    waiting.wake(2.1)
    assert [waiting.place(name) for name in "abcd"] == ["active", "backoff", "backoff", "backoff"]
    assert [waiting.pop(2.1) for _ in range(5)] == ["a", "c", "b", "d", None]


@pytest.mark.parametrize(
    ("failed_s", "count", "again_s"), [(1.43, 1, 3), (3.0, 2, 6), (0.2, 4, 9), (5.0, 6, 16)]
)
def test_a_pod_after_an_error_waits_for_the_end_of_its_backoff(waiting, failed_s, count, again_s):
    """This holds even if the scheduler is idle: until the first whole second after the backoff."""
    waiting.add("a")
    for _ in range(count):
        waiting.queue.activate("default/a", seconds(failed_s))
        waiting.fail(failed_s, ())
    assert (waiting.place("a"), waiting.due_s()) == ("error_backoff", again_s)
    assert waiting.pop(again_s - 0.001) is None
    assert waiting.pop(again_s) == "a"


def test_events_do_not_shorten_an_error_backoff(waiting):
    """No plugin rejected the pod, so no event can help."""
    waiting.add("a")
    waiting.fail(0.5, ())
    waiting.wake(0.6)
    assert (waiting.place("a"), waiting.due_s()) == ("error_backoff", 2)


def test_without_popping_from_backoff_pods_wait_until_the_end(new_waiting):
    """Ticks are seconds since the start; a tick exactly at the end is too early."""
    waiting = new_waiting(start_s=-0.5, pop_from_backoff=False)
    waiting.add("a", 0)
    waiting.fail(0.5)
    waiting.wake(0.6)
    assert (waiting.place("a"), waiting.due_s()) == ("backoff", 2.5)
    assert waiting.pop(2.4) is None
    assert waiting.fail(2.5) == "a"
    waiting.wake(2.6)
    assert waiting.due_s() == 5.5
