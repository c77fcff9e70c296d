"""SchedulingQueue: whose turn it is, and when it comes again.

upstream: pkg/scheduler/backend/queue; one test per rule.
"""

from __future__ import annotations

import pytest

from fairlead.core.instant import seconds
from fairlead.core.status import unschedulable
from fairlead.framework.cluster_event import ClusterEvent, EventKind
from fairlead.framework.profile import Profile
from fairlead.testing.builders import make_node, make_pod

GATED = {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}}
HALF = {"spec": {"schedulingGates": [{"name": "b"}]}}
OTHERS = EventKind.ASSIGNED_POD_LABEL


# --- order -----------------------------------------------------------------------------------


def test_higher_priority_first_then_arrival(waiting):
    """Neither names nor creation times play a part."""
    for name, priority in (("z", None), ("y", 5), ("x", 5), ("w", -1), ("v", 0)):
        waiting.add(name, priority=priority)
    assert [waiting.pop() for _ in range(6)] == ["y", "x", "z", "v", "w", None]


def test_a_pod_that_was_tried_goes_behind_those_that_were_not(waiting):
    """It comes into the queue anew when its attempt ends."""
    waiting.add("a", 0)
    waiting.add("b", 1)
    assert waiting.fail(1.5) == "a"
    waiting.wake(9)
    assert [waiting.pop(9), waiting.pop(9)] == ["b", "a"]


def test_pods_woken_together_keep_the_order_of_their_attempts(waiting):
    """Not that of their arrival, nor that of waking."""
    for name in ("a", "b", "c"):
        waiting.add(name)
    assert [waiting.fail(0.1), waiting.fail(0.1), waiting.fail(0.1)] == ["a", "b", "c"]
    waiting.wake(20)
    assert waiting.fail(20) == "a"
    waiting.wake(40)
    assert [waiting.pop(40) for _ in range(3)] == ["b", "c", "a"]


def test_a_change_of_priority_moves_a_pod(waiting):
    """While it is active, and while it backs off."""
    waiting.add("a", priority=1)
    waiting.add("b", priority=2)
    waiting.update("a", 0, priority=3)
    assert [waiting.fail(0.2), waiting.fail(0.2)] == ["a", "b"]
    waiting.wake(0.3)
    waiting.update("b", 0.3, priority=4)
    assert [waiting.pop(0.4), waiting.pop(0.4), waiting.pop(0.4)] == ["b", "a", None]


def test_another_version_takes_the_place_of_the_first(waiting):
    """Nobody is tried twice for it, and it is the newest version that is tried."""
    waiting.add("a")
    waiting.update("a", 1, labels={"v": "2"})
    popped = waiting.queue.pop(seconds(2))
    assert popped.info.labels == {"v": "2"}
    assert waiting.pop(2) is None


# --- backoff ---------------------------------------------------------------------------------


def windows(waiting, count, plugins):
    """Whole seconds until the backoff of the k-th failed attempt is noticed to be over."""
    found, now = [], 0.0
    for _ in range(count):
        waiting.queue.activate("default/a", seconds(now))
        waiting.fail(now, plugins)
        found.append(waiting.find("a").window / seconds(1) - now)
        now += 20
    return found


def test_backoff_doubles_up_to_its_maximum(waiting):
    """Waiting does not reset it."""
    waiting.add("a")
    assert windows(waiting, 7, ["NodeResourcesFit"]) == [1, 2, 4, 8, 10, 10, 10]


def test_backoff_is_configured(new_waiting):
    """podInitialBackoffSeconds and podMaxBackoffSeconds."""
    waiting = new_waiting(initial=3, maximum=7)
    waiting.add("a")
    assert windows(waiting, 4, ["NodeResourcesFit"]) == [3, 6, 7, 7]


def test_errors_and_rejections_are_counted_apart(waiting):
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


def test_a_pod_that_was_never_tried_has_no_backoff(waiting):
    """Also when it could not be tried at first."""
    waiting.add("a", 0, **GATED)
    waiting.update("a", 0.1, [EventKind.POD_GATES_GONE])
    assert (waiting.place("a"), waiting.pop(0.1)) == ("active", "a")


@pytest.mark.parametrize(
    ("woken_s", "place"),
    [(1.0, "backoff"), (1.99, "backoff"), (2.0, "active"), (7, "active")],
)
def test_backoff_runs_from_the_end_of_the_attempt(waiting, woken_s, place):
    """Wherever the pod waits; expiry is cut down to the second, and must lie before this one."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.wake(woken_s)
    assert waiting.place("a") == place


def test_an_idle_scheduler_serves_who_is_backing_off(waiting):
    """In the same instant, however often the pod failed."""
    waiting.add("a")
    for attempt in range(1, 6):
        assert waiting.fail(0.5) == "a"
        waiting.wake(0.5)
        assert (waiting.place("a"), waiting.due_s()) == ("backoff", 0)
        assert waiting.find("a").attempts == attempt
    assert waiting.pop(0.5) == "a"


def test_who_backs_off_waits_for_everybody_who_does_not(waiting):
    """Even for lower priorities, until its backoff is over."""
    waiting.add("a", priority=9)
    waiting.fail(0.5)
    waiting.wake(0.6)
    waiting.add("b", 0.7)
    waiting.add("c", 0.8)
    assert waiting.pop(1.9) == "b"
    assert waiting.pop(2.0) == "a"
    assert waiting.pop(2.0) == "c"


def test_backoffs_of_one_second_are_served_by_priority(waiting):
    """That is what the windows are for; earlier windows come first."""
    for name, priority, at_s in (("a", 1, 0.9), ("b", 2, 1.1), ("c", 3, 1.2), ("d", 9, 2.0)):
        waiting.add(name, at_s, priority=priority)
        waiting.fail(at_s)
    waiting.wake(2.1)
    assert [waiting.place(name) for name in "abcd"] == ["active", "backoff", "backoff", "backoff"]
    assert [waiting.pop(2.1) for _ in range(5)] == ["a", "c", "b", "d", None]


@pytest.mark.parametrize(
    ("failed_s", "count", "again_s"), [(1.43, 1, 3), (3.0, 2, 6), (0.2, 4, 9), (5.0, 6, 16)]
)
def test_an_error_is_waited_out(waiting, failed_s, count, again_s):
    """By an idle scheduler too: at the first whole second after the backoff."""
    waiting.add("a")
    for _ in range(count):
        waiting.queue.activate("default/a", seconds(failed_s))
        waiting.fail(failed_s, ())
    assert (waiting.place("a"), waiting.due_s()) == ("error_backoff", again_s)
    assert waiting.pop(again_s - 0.001) is None
    assert waiting.pop(again_s) == "a"


def test_events_do_not_shorten_an_error_backoff(waiting):
    """Nothing rejected the pod, so nothing that happens can help."""
    waiting.add("a")
    waiting.fail(0.5, ())
    waiting.wake(0.6)
    assert (waiting.place("a"), waiting.due_s()) == ("error_backoff", 2)


def test_without_early_popping_backoffs_are_exact(new_waiting):
    """Ticks are seconds from the scheduler's start; one at the very end is too early."""
    waiting = new_waiting(start_s=-0.5, pop_from_backoff=False)
    waiting.add("a", 0)
    waiting.fail(0.5)
    waiting.wake(0.6)
    assert (waiting.place("a"), waiting.due_s()) == ("backoff", 2.5)
    assert waiting.pop(2.4) is None
    assert waiting.fail(2.5) == "a"
    waiting.wake(2.6)
    assert waiting.due_s() == 5.5


# --- waiting for something to happen ---------------------------------------------------------


def test_a_rejected_pod_waits_for_an_event(waiting):
    """Time alone does nothing before the leftover flush."""
    waiting.add("a")
    waiting.fail(0.5)
    assert (waiting.place("a"), waiting.pop(29)) == ("unschedulable", None)


def test_only_the_plugins_that_rejected_are_asked(waiting):
    """A departure frees resources; it does not change labels of nodes."""
    for name, plugins in (("a", ["NodeAffinity"]), ("b", ["NodeAffinity", "NodeResourcesFit"])):
        waiting.add(name)
        waiting.fail(0.5, plugins)
    waiting.wake(9)
    assert (waiting.place("a"), waiting.place("b")) == ("unschedulable", "active")


def test_a_plugin_that_nobody_knows_hears_everything(waiting):
    """It cannot say what it waits for."""
    waiting.add("a")
    waiting.fail(0.5, ["Mystery"])
    waiting.wake(9, OTHERS)
    assert waiting.place("a") == "active"


def test_an_event_may_be_for_lesser_pods_only(waiting):
    """Room that was promised to a pod is no news to those who ignored the promise."""
    for name, priority in (("low", 1), ("equal", 5), ("high", 6)):
        waiting.add(name, priority=priority)
        waiting.fail(0.5)
    waiting.wake(9, priority_max=5)
    places = [waiting.place(name) for name in ("low", "equal", "high")]
    assert places == ["active", "active", "unschedulable"]


def test_one_pod_may_be_spared(waiting):
    """Whoever caused the event is not woken by it."""
    for name in ("a", "b"):
        waiting.add(name)
        waiting.fail(0.5)
    waiting.queue.wake(event_of(waiting), seconds(9), spare="uid-a")
    assert (waiting.place("a"), waiting.place("b")) == ("unschedulable", "active")


def event_of(waiting):
    return ClusterEvent(EventKind.ASSIGNED_POD_DELETE, waiting.find("a").info, None)


def test_what_happened_during_an_attempt_counts(waiting):
    """A rejection found on what was true before must not put the pod to sleep."""
    waiting.add("a")
    queued = waiting.queue.pop(seconds(0.5))
    waiting.wake(0.6)
    waiting.queue.put_back(queued, seconds(0.7), ("NodeResourcesFit",))
    assert waiting.place("a") == "backoff"


def test_what_happened_before_an_attempt_does_not_count(waiting):
    """It was seen."""
    waiting.add("a")
    waiting.wake(0.1)
    waiting.fail(0.5)
    assert waiting.place("a") == "unschedulable"


def test_pods_of_two_profiles_wait_for_their_own_plugins(new_waiting):
    """Under one name plugins may be configured differently, or be missing."""
    bare = Profile("bare", (("PrioritySort", 0), ("NodeName", 0), ("DefaultBinder", 0)))
    waiting = new_waiting(profiles=(Profile(), bare))
    waiting.add("a", spec={"schedulerName": "bare"})
    waiting.fail(0.5, ["NodeName"])
    waiting.wake(1)
    assert waiting.place("a") == "unschedulable"
    waiting.wake(9, EventKind.NODE_ADD, new=make_node("n"))
    assert waiting.place("a") == "active"


# --- the leftover flush ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed_s", "start_s", "again_s"),
    [(0.5, 0, 330), (29.9, 0, 330), (30.0, 0, 360), (30.1, 0, 360), (10.0, -0.5, 329.5)],
)
def test_a_forgotten_pod_is_tried_after_five_minutes(new_waiting, failed_s, start_s, again_s):
    """More than five, at a tick of thirty seconds counted from the scheduler's start."""
    waiting = new_waiting(start_s=start_s)
    waiting.add("a")
    waiting.fail(failed_s, ["NodeAffinity"])
    assert waiting.due_s() == again_s
    assert waiting.pop(again_s - 0.001) is None
    assert waiting.pop(again_s) == "a"


def test_each_attempt_starts_the_five_minutes_anew(waiting):
    """A pod that was tried meanwhile is not forgotten."""
    waiting.add("a")
    waiting.fail(10)
    waiting.wake(200)
    waiting.fail(200)
    assert waiting.due_s() == 510


def test_the_flush_takes_whoever_is_due_and_no_other(waiting):
    """In the order of their last attempts."""
    for name, at_s in (("a", 1), ("b", 2), ("c", 40)):
        waiting.add(name, at_s)
        waiting.fail(at_s)
    assert [waiting.pop(330), waiting.pop(330), waiting.pop(330)] == ["a", "b", None]
    assert waiting.due_s() == 360


def test_a_late_flush_counts_from_its_tick(waiting):
    """Whoever was due at the last tick goes, even if nobody looked in time."""
    waiting.add("a", 1)
    waiting.fail(1)
    waiting.add("b", 35)
    waiting.fail(35)
    assert [waiting.pop(345), waiting.pop(345)] == ["a", None]


def test_how_long_is_too_long_is_configured(new_waiting):
    """podMaxInUnschedulablePodsDuration."""
    waiting = new_waiting(max_in_unschedulable=60)
    waiting.add("a")
    waiting.fail(10)
    assert waiting.due_s() == 90


# --- gates -----------------------------------------------------------------------------------


def test_a_gated_pod_is_not_tried(waiting):
    """No event, no flush, and no removal of a gate but the last lets it in."""
    waiting.add("a", **GATED)
    waiting.wake(1)
    waiting.wake(1, EventKind.NODE_ADD, new=make_node("n"))
    waiting.update("a", 2, **HALF)
    assert (waiting.place("a"), waiting.due_s()) == ("unschedulable", None)
    assert waiting.pop(10_000) is None
    waiting.update("a", 10_000, [EventKind.POD_GATES_GONE])
    assert waiting.pop(10_000) == "a"


def test_a_pod_arrives_when_its_gates_fall_as_late_as_it_arrived(waiting):
    """Its place in the order is that of its first arrival."""
    waiting.add("a", 0, **GATED)
    waiting.add("b", 1)
    waiting.update("a", 5, [EventKind.POD_GATES_GONE])
    assert [waiting.pop(5), waiting.pop(5)] == ["a", "b"]


def test_another_gate_may_keep_a_pod_out(new_waiting):
    """A preemptor whose victims have not been told to go; it hears of departures only."""
    closed = [True]
    verdict = unschedulable("not yet").by("DefaultPreemption")
    waiting = new_waiting(gate=lambda pod: verdict if closed else None)
    waiting.add("a")
    assert (waiting.place("a"), waiting.pop(0)) == ("unschedulable", None)
    closed.clear()
    waiting.wake(1, EventKind.NODE_ADD, new=make_node("n"))
    assert waiting.place("a") == "unschedulable"
    waiting.wake(2)
    assert waiting.place("a") == "active"


# --- coming and going ------------------------------------------------------------------------


def test_a_pod_that_went_is_not_served(waiting):
    """From wherever it waited."""
    for name, plugins in (("rejected", ["NodeResourcesFit"]), ("failed", [])):
        waiting.add(name)
        waiting.fail(0.5, plugins)
    waiting.add("active")
    waiting.add("gated", **GATED)
    for name in ("rejected", "failed", "active", "gated"):
        waiting.queue.remove(f"default/{name}")
    waiting.wake(9)
    assert (len(waiting.queue), waiting.pop(10_000), waiting.due_s()) == (0, None, None)


def test_a_pod_that_went_and_came_back_starts_anew(waiting):
    """No backoff, no attempts."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.queue.remove("default/a")
    waiting.add("a", 0.6)
    assert (waiting.find("a").attempts, waiting.place("a")) == (0, "active")


def test_a_settled_pod_is_forgotten(waiting):
    """Its successor of the same name is not."""
    waiting.add("a")
    queued = waiting.queue.pop(seconds(1))
    waiting.queue.remove("default/a")
    waiting.add("a", 1)
    waiting.queue.settle(queued)
    assert waiting.pop(2) == "a"


def test_activated_is_next_whatever_its_backoff(waiting):
    """A preemption that failed is made good at once."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.queue.activate("default/a", seconds(0.6))
    assert (waiting.place("a"), waiting.pop(0.6)) == ("active", "a")
    waiting.queue.activate("default/a", seconds(0.7))
    assert waiting.place("a") == "in_flight"
    waiting.queue.activate("default/nobody", seconds(0.7))


@pytest.mark.parametrize("name", ["nobody", "a"])
def test_an_update_of_a_stranger_is_an_arrival(waiting, name):
    """The pod may have been bound by somebody and freed again."""
    waiting.queue.update(waiting.info(pod_called(name)), seconds(1), [])
    assert waiting.pop(1) == name


def pod_called(name):
    return make_pod(name)


def test_an_update_during_an_attempt_is_taken_in(waiting):
    """The next attempt is made with it."""
    waiting.add("a")
    queued = waiting.queue.pop(seconds(1))
    waiting.update("a", 1, labels={"v": "2"})
    waiting.queue.put_back(queued, seconds(1), ("NodeResourcesFit",))
    assert waiting.find("a").info.labels == {"v": "2"}
    assert waiting.place("a") == "unschedulable"
