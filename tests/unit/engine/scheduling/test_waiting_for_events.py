"""Unschedulable and gated pods: the events after which they are retried.

upstream: pkg/scheduler/backend/queue/scheduling_queue.go
"""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import unschedulable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.profile import Profile
from fairlead.testing.builders import make_node, make_pod

GATED = {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}}
HALF = {"spec": {"schedulingGates": [{"name": "b"}]}}
OTHERS = EventKind.ASSIGNED_POD_LABEL


# --- waiting for something to happen -----------------------------------------------------------


def test_a_rejected_pod_waits_for_an_event(waiting):
    """Without an event, it waits until the flush of unschedulable pods."""
    waiting.add("a")
    waiting.fail(0.5)
    assert (waiting.place("a"), waiting.pop(29)) == ("unschedulable", None)


def test_only_hints_of_the_rejecting_plugins_are_called(waiting):
    """The deletion of a pod frees resources; it does not change labels of nodes."""
    for name, plugins in (("a", ["NodeAffinity"]), ("b", ["NodeAffinity", "NodeResourcesFit"])):
        waiting.add(name)
        waiting.fail(0.5, plugins)
    waiting.wake(9)
    assert (waiting.place("a"), waiting.place("b")) == ("unschedulable", "active")


def test_a_plugin_without_events_gets_every_event(waiting):
    """It does not state which events it waits for."""
    waiting.add("a")
    waiting.fail(0.5, ["Mystery"])
    waiting.wake(9, OTHERS)
    assert waiting.place("a") == "active"


def test_an_event_may_be_limited_to_a_maximum_priority(waiting):
    """The end of a nomination does not help pods of higher priority, which ignored it."""
    for name, priority in (("low", 1), ("equal", 5), ("high", 6)):
        waiting.add(name, priority=priority)
        waiting.fail(0.5)
    waiting.wake(9, priority_max=5)
    places = [waiting.place(name) for name in ("low", "equal", "high")]
    assert places == ["active", "active", "unschedulable"]


def test_an_event_does_not_wake_the_pod_that_caused_it(waiting):
    """It wakes other pods."""
    for name in ("a", "b"):
        waiting.add(name)
        waiting.fail(0.5)
    waiting.queue.wake(event_of(waiting), seconds(9), spare="uid-a")
    assert (waiting.place("a"), waiting.place("b")) == ("unschedulable", "active")


def event_of(waiting):
    return ClusterEvent(EventKind.ASSIGNED_POD_DELETE, waiting.find("a").info, None)


def test_events_during_an_attempt_count(waiting):
    """A rejection that is out of date must not make the pod unschedulable."""
    waiting.add("a")
    queued = waiting.queue.pop(seconds(0.5))
    waiting.wake(0.6)
    waiting.queue.put_back(queued, seconds(0.7), ("NodeResourcesFit",))
    assert waiting.place("a") == "backoff"


def test_events_before_an_attempt_do_not_count(waiting):
    """The attempt has considered them."""
    waiting.add("a")
    waiting.wake(0.1)
    waiting.fail(0.5)
    assert waiting.place("a") == "unschedulable"


def test_pods_of_two_profiles_wait_for_their_own_plugins(new_waiting):
    """Plugins of one name may be configured differently, or missing, in a profile."""
    bare = Profile("bare", (("PrioritySort", 0), ("NodeName", 0), ("DefaultBinder", 0)))
    waiting = new_waiting(profiles=(Profile(), bare))
    waiting.add("a", spec={"schedulerName": "bare"})
    waiting.fail(0.5, ["NodeName"])
    waiting.wake(1)
    assert waiting.place("a") == "unschedulable"
    waiting.wake(9, EventKind.NODE_ADD, new=make_node("n"))
    assert waiting.place("a") == "active"


# --- the leftover flush ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed_s", "start_s", "again_s"),
    [(0.5, 0, 330), (29.9, 0, 330), (30.0, 0, 360), (30.1, 0, 360), (10.0, -0.5, 329.5)],
)
def test_an_unschedulable_pod_is_flushed_after_five_minutes(
    new_waiting, failed_s, start_s, again_s
):
    """After more than five minutes, at a tick of thirty seconds since the start."""
    waiting = new_waiting(start_s=start_s)
    waiting.add("a")
    waiting.fail(failed_s, ["NodeAffinity"])
    assert waiting.due_s() == again_s
    assert waiting.pop(again_s - 0.001) is None
    assert waiting.pop(again_s) == "a"


def test_each_attempt_restarts_the_five_minutes(waiting):
    """The time counts from the last attempt."""
    waiting.add("a")
    waiting.fail(10)
    waiting.wake(200)
    waiting.fail(200)
    assert waiting.due_s() == 510


def test_the_flush_moves_only_pods_that_are_due(waiting):
    """In the order of their last attempts."""
    for name, at_s in (("a", 1), ("b", 2), ("c", 40)):
        waiting.add(name, at_s)
        waiting.fail(at_s)
    assert [waiting.pop(330), waiting.pop(330), waiting.pop(330)] == ["a", "b", None]
    assert waiting.due_s() == 360


def test_a_late_flush_counts_from_its_tick(waiting):
    """Pods that were due at the last tick are flushed, even if the queue is read later."""
    waiting.add("a", 1)
    waiting.fail(1)
    waiting.add("b", 35)
    waiting.fail(35)
    assert [waiting.pop(345), waiting.pop(345)] == ["a", None]


def test_the_time_until_the_flush_can_be_configured(new_waiting):
    """podMaxInUnschedulablePodsDuration."""
    waiting = new_waiting(max_in_unschedulable=60)
    waiting.add("a")
    waiting.fail(10)
    assert waiting.due_s() == 90


# --- gates -------------------------------------------------------------------------------------


def test_a_gated_pod_is_not_tried(waiting):
    """Neither an event, a flush nor the removal of one of several gates activates it."""
    waiting.add("a", **GATED)
    waiting.wake(1)
    waiting.wake(1, EventKind.NODE_ADD, new=make_node("n"))
    waiting.update("a", 2, **HALF)
    assert (waiting.place("a"), waiting.due_s()) == ("unschedulable", None)
    assert waiting.pop(10_000) is None
    waiting.update("a", 10_000, [EventKind.POD_GATES_GONE])
    assert waiting.pop(10_000) == "a"


def test_a_pod_whose_gates_were_removed_is_ordered_by_its_arrival(waiting):
    """Its timestamp is that of its first arrival."""
    waiting.add("a", 0, **GATED)
    waiting.add("b", 1)
    waiting.update("a", 5, [EventKind.POD_GATES_GONE])
    assert [waiting.pop(5), waiting.pop(5)] == ["a", "b"]


def test_a_gated_preemptor_waits_for_an_event_that_helps_it(new_waiting):
    """After a deletion, PreEnqueue runs only if a rejecting plugin waits for deletions."""
    closed = [True]
    verdict = unschedulable("not yet").by("DefaultPreemption")
    waiting = new_waiting(gate=lambda pod: verdict if closed else None)
    ports = {"spec": {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}}
    closed.clear()
    waiting.add("a", **ports)
    waiting.fail(0, ("NodePorts",))
    closed.append(True)
    victim = waiting.info(make_pod("victim", node="n", **ports))
    waiting.wake(10, old=victim)
    assert (waiting.find("a").gated_by, waiting.place("a")) == (
        "DefaultPreemption",
        "unschedulable",
    )
    closed.clear()
    waiting.wake(11, EventKind.NODE_ADD, new=make_node("n"))  # not an event of DefaultPreemption
    waiting.wake(12)  # a pod without ports is gone
    assert waiting.place("a") == "unschedulable"
    waiting.wake(13, old=victim)
    assert (waiting.find("a").gated_by, waiting.place("a")) == ("", "active")


def test_a_gated_pod_is_retried_after_an_update_that_helps_it(new_waiting):
    """Updates of the pod itself are examined by every plugin that rejected it."""
    closed = []
    verdict = unschedulable("not yet").by("DefaultPreemption")
    waiting = new_waiting(gate=lambda pod: verdict if closed else None)
    waiting.add("a")
    waiting.fail(0, ("TaintToleration",))
    closed.append(True)
    waiting.update("a", 10, [EventKind.POD_TOLERATION])
    assert (waiting.find("a").gated_by, waiting.place("a")) == (
        "DefaultPreemption",
        "unschedulable",
    )
    closed.clear()
    waiting.update("a", 11, [EventKind.POD_TOLERATION])
    assert waiting.place("a") == "active"
