"""MoveRequestQueue: the events that wake pods up to 1.19, where each wakes all pods or none.

upstream: v1.19 pkg/scheduler/eventhandlers.go and internal/queue/scheduling_queue.go.
"""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import StorageClass
from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.scheduling.queue.move_request_queue import MoveRequestQueue
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.testing.builders import make_node, make_pod

NEAR_WEB = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
}
IDLE = 300.0


@pytest.fixture
def old_waiting(new_waiting):
    """A queue of 1.19."""
    return new_waiting(kind=MoveRequestQueue)


def unschedulable(waiting, name="a", **more):
    """Return a pod that failed so long ago that its backoff has ended."""
    waiting.add(name, **more)
    assert waiting.fail(0.5, ["VolumeZone"]) == name
    return name


def test_a_node_wakes_all_unschedulable_pods(old_waiting):
    unschedulable(old_waiting)
    old_waiting.wake(IDLE, EventKind.NODE_ADD, new=make_node("n1"))
    assert old_waiting.place("a") == "active"


def test_kinds_that_1_19_does_not_watch_wake_no_pods(old_waiting):
    unschedulable(old_waiting)
    old_waiting.wake(IDLE, EventKind.POD_TOLERATION)
    assert old_waiting.place("a") == "unschedulable"


@pytest.mark.parametrize(
    ("mode", "place"), [("WaitForFirstConsumer", "active"), ("Immediate", "unschedulable")]
)
def test_only_a_storage_class_with_wait_for_first_consumer_wakes_pods(old_waiting, mode, place):
    unschedulable(old_waiting)
    added = decode_as(StorageClass, {"metadata": {"name": "s"}, "volumeBindingMode": mode})
    old_waiting.wake(IDLE, EventKind.STORAGE_CLASS_ADD, new=added)
    assert old_waiting.place("a") == place


def test_a_bound_pod_wakes_pods_whose_required_affinity_selects_it(old_waiting):
    """A term without namespaces selects its own namespace; a pod without affinity is not woken."""
    unschedulable(old_waiting, "near", spec=NEAR_WEB)
    unschedulable(old_waiting, "elsewhere", spec=NEAR_WEB | {"priority": 0})
    unschedulable(old_waiting, "plain")
    for labels, namespace in (({"app": "db"}, "default"), ({"app": "web"}, "other")):
        bound = old_waiting.info(make_pod("b", node="n1", labels=labels, namespace=namespace))
        old_waiting.wake(IDLE, EventKind.ASSIGNED_POD_ADD, new=bound)
        assert old_waiting.place("near") == "unschedulable"
    bound = old_waiting.info(make_pod("b", node="n1", labels={"app": "web"}))
    old_waiting.wake(IDLE, EventKind.ASSIGNED_POD_ADD, new=bound)
    assert [old_waiting.place(one) for one in ("near", "elsewhere", "plain")] == [
        "active",
        "active",
        "unschedulable",
    ]


def test_a_move_during_an_attempt_sends_the_pod_to_backoff(old_waiting):
    """For any event, because the attempt may have missed it."""
    old_waiting.add("a")
    queued = old_waiting.queue.pop(seconds(1))
    old_waiting.wake(1.5, EventKind.NODE_ADD, new=make_node("n1"))
    old_waiting.queue.put_back(queued, seconds(2), ("NodeResourcesFit",))
    assert old_waiting.place("a") == "backoff"


def test_a_bound_pod_is_a_move_even_if_no_pod_waits(old_waiting):
    """Pod a is placed, another pod is bound, and then the binding of pod a is refused."""
    old_waiting.add("a")
    queued = old_waiting.queue.pop(seconds(1))
    old_waiting.queue.done(queued)
    other = old_waiting.info(make_pod("other", node="n1"))
    old_waiting.queue.wake_after_assignment(other, seconds(1.5))
    old_waiting.queue.put_back(queued, seconds(2), ("NodeResourcesFit",))
    assert old_waiting.place("a") == "backoff"


def test_an_update_makes_a_waiting_pod_active(old_waiting):
    """From the unschedulable pods if its spec or labels changed, from backoff in any case."""
    unschedulable(old_waiting)
    old_waiting.update("a", 1)
    assert old_waiting.place("a") == "unschedulable"
    old_waiting.update("a", 1, labels={"v": "2"})
    assert old_waiting.place("a") == "active"
    assert old_waiting.fail(2) == "a"
    old_waiting.wake(2.1, EventKind.NODE_ADD, new=make_node("n1"))
    assert old_waiting.place("a") == "backoff"
    old_waiting.update("a", 2.2, labels={"v": "2"})
    assert old_waiting.place("a") == "active"


def test_an_update_of_a_pod_in_its_attempt_queues_it_again(old_waiting):
    """1.19 has no pods in flight; the attempt that fails later changes nothing."""
    old_waiting.add("a")
    queued = old_waiting.queue.pop(seconds(1))
    old_waiting.update("a", 1, labels={"v": "2"})
    old_waiting.queue.put_back(queued, seconds(2), ("NodeResourcesFit",))
    assert old_waiting.place("a") == "active"
    assert old_waiting.find("a").info.labels == {"v": "2"}


# --- beside the queue of 1.36 -----------------------------------------------------------------

QUEUES = pytest.mark.parametrize("kind", [MoveRequestQueue, SchedulingQueue], ids=["1.19", "1.36"])


def is_old(kind):
    return kind is MoveRequestQueue


@QUEUES
def test_an_irrelevant_node_that_is_added_during_an_attempt(new_waiting, kind):
    """In 1.19 the pod backs off and is retried; in 1.36 it stays unschedulable."""
    waiting = new_waiting(kind=kind)
    waiting.add("a")
    queued = waiting.queue.pop(seconds(1))
    waiting.wake(1.5, EventKind.NODE_LABEL, old=make_node("n1"), new=make_node("n1"))
    waiting.queue.put_back(queued, seconds(2), ("NodeResourcesFit",))
    assert waiting.place("a") == ("backoff" if is_old(kind) else "unschedulable")


@QUEUES
def test_a_storage_class_and_a_pod_that_lacks_cpu(new_waiting, kind):
    """1.19 retries every pod, 1.36 only those that VolumeBinding rejected."""
    waiting = new_waiting(kind=kind)
    waiting.add("a")
    waiting.fail(0.5)
    late = {"metadata": {"name": "s"}, "volumeBindingMode": "WaitForFirstConsumer"}
    waiting.wake(IDLE, EventKind.STORAGE_CLASS_ADD, new=decode_as(StorageClass, late))
    assert waiting.place("a") == ("active" if is_old(kind) else "unschedulable")


@QUEUES
def test_a_bound_pod_that_attracts_a_pod_that_lacks_cpu(new_waiting, kind):
    """1.19 retries every pod whose affinity selects it, whatever rejected the pod."""
    waiting = new_waiting(kind=kind)
    waiting.add("near", spec=NEAR_WEB)
    waiting.fail(0.5)
    web = waiting.info(make_pod("web", node="n", labels={"app": "web"}))
    waiting.wake(IDLE, EventKind.ASSIGNED_POD_ADD, new=web)
    assert waiting.place("near") == ("active" if is_old(kind) else "unschedulable")


@QUEUES
def test_an_update_during_an_attempt(new_waiting, kind):
    """1.19 queues the pod a second time, 1.36 decides when the attempt has failed."""
    waiting = new_waiting(kind=kind)
    waiting.add("a")
    waiting.queue.pop(seconds(1))
    waiting.update("a", 1, labels={"v": "2"})
    assert waiting.place("a") == ("active" if is_old(kind) else "in_flight")


@QUEUES
def test_an_error_after_two_rejections(new_waiting, kind):
    """1.19 doubles the backoff after every attempt; 1.36 counts errors separately."""
    waiting = new_waiting(kind=kind)
    waiting.add("a")
    for at in (1, 50):
        waiting.fail(at)
        waiting.wake(at + 30, EventKind.NODE_ADD, new=make_node("n1", cpu="8"))
    waiting.fail(100, ())
    waiting.wake(100, EventKind.NODE_ADD, new=make_node("n1", cpu="8"))
    # The queue releases pods once per second, just after the backoff of 4 s or 1 s.
    assert waiting.due_s() == (105 if is_old(kind) else 102)
