"""SchedulingQueue: the order of pods, and their arrival, updates and deletion.

upstream: pkg/scheduler/backend/queue; one test per rule.
"""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import unschedulable
from fairlead.testing.builders import make_pod

GATED = {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}}


# --- order -------------------------------------------------------------------------------------


def test_pods_are_popped_by_priority_and_then_by_arrival(waiting):
    """Names and creation times do not matter."""
    for name, priority in (("z", None), ("y", 5), ("x", 5), ("w", -1), ("v", 0)):
        waiting.add(name, priority=priority)
    assert [waiting.pop() for _ in range(6)] == ["y", "x", "z", "v", "w", None]


def test_a_pod_is_queued_behind_new_pods_after_its_attempt(waiting):
    """Its timestamp is the end of its attempt."""
    waiting.add("a", 0)
    waiting.add("b", 1)
    assert waiting.fail(1.5) == "a"
    waiting.wake(9)
    assert [waiting.pop(9), waiting.pop(9)] == ["b", "a"]


def test_pods_woken_together_keep_the_order_of_their_attempts(waiting):
    """The order of arrival and of waking does not matter."""
    for name in ("a", "b", "c"):
        waiting.add(name)
    assert [waiting.fail(0.1), waiting.fail(0.1), waiting.fail(0.1)] == ["a", "b", "c"]
    waiting.wake(20)
    assert waiting.fail(20) == "a"
    waiting.wake(40)
    assert [waiting.pop(40) for _ in range(3)] == ["b", "c", "a"]


def test_a_change_of_priority_moves_a_pod(waiting):
    """This holds for active pods and for pods in backoff."""
    waiting.add("a", priority=1)
    waiting.add("b", priority=2)
    waiting.update("a", 0, priority=3)
    assert [waiting.fail(0.2), waiting.fail(0.2)] == ["a", "b"]
    waiting.wake(0.3)
    waiting.update("b", 0.3, priority=4)
    assert [waiting.pop(0.4), waiting.pop(0.4), waiting.pop(0.4)] == ["b", "a", None]


def test_an_update_replaces_the_queued_version_of_a_pod(waiting):
    """The pod is popped once, in its newest version."""
    waiting.add("a")
    waiting.update("a", 1, labels={"v": "2"})
    popped = waiting.queue.pop(seconds(2))
    assert popped.info.labels == {"v": "2"}
    assert waiting.pop(2) is None


# --- coming and going --------------------------------------------------------------------------


def test_a_deleted_pod_is_not_popped(waiting):
    """The pod may be in any of the queues."""
    for name, plugins in (("rejected", ["NodeResourcesFit"]), ("failed", [])):
        waiting.add(name)
        waiting.fail(0.5, plugins)
    waiting.add("active")
    waiting.add("gated", **GATED)
    for name in ("rejected", "failed", "active", "gated"):
        waiting.queue.remove(f"default/{name}")
    waiting.wake(9)
    assert (len(waiting.queue), waiting.pop(10_000), waiting.due_s()) == (0, None, None)


def test_a_recreated_pod_has_no_backoff_and_no_attempts(waiting):
    """It is a new pod of the same name."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.queue.remove("default/a")
    waiting.add("a", 0.6)
    assert (waiting.find("a").attempts, waiting.place("a")) == (0, "active")


def test_done_does_not_remove_a_recreated_pod(waiting):
    """Its uid differs from that of the pod whose attempt has ended."""
    waiting.add("a", uid="1")
    queued = waiting.queue.pop(seconds(1))
    waiting.queue.remove("default/a")
    waiting.add("a", 1, uid="2")
    waiting.queue.done(queued)
    assert waiting.pop(2) == "a"


def test_an_activated_pod_skips_its_backoff(waiting):
    """A pod whose preemption failed is retried at once."""
    waiting.add("a")
    waiting.fail(0.5)
    waiting.queue.activate("default/a", seconds(0.6))
    assert (waiting.place("a"), waiting.pop(0.6)) == ("active", "a")
    waiting.queue.activate("default/a", seconds(0.7))
    assert waiting.place("a") == "in_flight"
    waiting.queue.activate("default/nobody", seconds(0.7))


@pytest.mark.parametrize("name", ["nobody", "a"])
def test_an_update_of_an_unknown_pod_adds_it(waiting, name):
    """Another client may have bound the pod and unbound it again."""
    waiting.queue.update(waiting.info(pod_called(name)), seconds(1), [])
    assert waiting.pop(1) == name


def pod_called(name):
    return make_pod(name)


def test_an_update_during_an_attempt_is_used_in_the_next_attempt(waiting):
    """The next attempt has the newest version of the pod."""
    waiting.add("a")
    queued = waiting.queue.pop(seconds(1))
    waiting.update("a", 1, labels={"v": "2"})
    waiting.queue.put_back(queued, seconds(1), ("NodeResourcesFit",))
    assert waiting.find("a").info.labels == {"v": "2"}
    assert waiting.place("a") == "unschedulable"


def test_pods_are_counted_by_queue_and_by_rejecting_plugin(waiting):
    """The names of queues are upstream's; a pod in its attempt is in no queue."""
    for name, plugins in (
        ("rejected", ["NodeResourcesFit", "NodeAffinity"]),
        ("crowded", ["NodeResourcesFit"]),
        ("failed", []),
    ):
        waiting.add(name)
        waiting.fail(0.5, plugins)
    waiting.add("in flight")
    waiting.pop(0.5)
    waiting.add("active")
    waiting.add("gated", **GATED)
    counts = {"active": 1, "backoff": 1, "unschedulable": 2, "gated": 1}
    assert waiting.queue.counts() == counts
    assert waiting.queue.rejections() == {
        ("NodeResourcesFit", "default-scheduler"): 2,
        ("NodeAffinity", "default-scheduler"): 1,
        ("SchedulingGates", "default-scheduler"): 1,
    }


def test_a_pod_that_became_gated_is_not_activated(new_waiting):
    """This also holds after the end of its backoff, if pods are not popped from backoff."""
    gates = {}
    waiting = new_waiting(gate=lambda pod: gates.get(pod.key), pop_from_backoff=False)
    for name in ("a", "b"):
        waiting.add(name)
        waiting.fail(0.5)
    waiting.wake(0.6)
    assert (waiting.place("a"), waiting.place("b")) == ("backoff", "backoff")
    gates |= dict.fromkeys(("default/a", "default/b"), unschedulable("closed").by("Gang"))
    waiting.queue.activate("default/a", seconds(0.7))
    assert (waiting.place("a"), waiting.pop(300)) == ("unschedulable", None)
    assert waiting.place("b") == "unschedulable"
    assert waiting.queue.counts()["gated"] == 2


@pytest.mark.parametrize("pops_from_backoff", [True, False])
def test_a_gated_pod_stays_in_its_queue_until_pre_enqueue_accepts_it(
    new_waiting, pops_from_backoff
):
    """Each event calls the plugin once; another plugin may reject the pod by then."""
    gates, gated = {}, []

    def gate(pod):
        gated.append(pod.key)
        return gates.get(pod.key)

    waiting = new_waiting(gate=gate, pop_from_backoff=pops_from_backoff)
    gates["default/a"] = unschedulable("closed").by("Preemption")
    waiting.add("a")
    for gated_by in ("Preemption", "Preemption", "Gang", "Preemption"):
        gates["default/a"] = unschedulable("closed").by(gated_by)
        gated.clear()
        waiting.wake(1)
        assert gated == ["default/a"]
        assert (waiting.find("a").gated_by, waiting.place("a")) == (gated_by, "unschedulable")
        assert waiting.pop(1) is None
    gates.clear()
    waiting.wake(2)
    assert (waiting.find("a").gated_by, waiting.pop(2)) == ("", "a")


def test_a_specific_pod_is_popped_from_any_queue_unless_it_is_gated(waiting):
    """The cycle of a PodGroup pops all pods of the group in this way."""
    for name in ("active", "unschedulable", "error"):
        waiting.add(name)
    gates = {"schedulingGates": [{"name": "g"}]}
    waiting.add("gated", spec=gates)
    waiting.fail(0)
    waiting.fail(0, plugins=("NodeResourcesFit",))
    waiting.fail(0, plugins=())
    waiting.add("new")
    taken = [waiting.queue.pop_specific(f"default/{name}") for name in ("error", "new", "active")]
    assert all(taken)
    assert {one.place.value for one in taken} == {"in_flight"}
    assert waiting.queue.pop_specific("default/new") is None
    assert waiting.queue.pop_specific("default/gated") is None
    assert waiting.queue.pop_specific("default/nobody") is None
    assert waiting.pop(400) == "unschedulable"
    assert waiting.pop(400) is None
