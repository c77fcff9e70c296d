"""The resources that evictions free go to the job for which the pods were evicted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairlead.engine.batch.actions.allocate import place_in_freed_room
from fairlead.testing.batch_builders import make_gang, make_priority_class, make_queue
from fairlead.testing.builders import make_node

CLASSES = [make_priority_class(name, value) for name, value in (("top", 99), ("high", 9))]
CONFIGURATION = """\
actions: "allocate, reclaim, preempt"
rules: fairlead
victims: gangs
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@pytest.fixture
def preempting(make_harness):
    """Return a function that makes a cluster in which `old`, on node n1, is evicted for `new`.

    Both gangs are in queue q, which then has more than its share. Queue p is idle.
    """

    def make(configuration=CONFIGURATION):
        harness = make_harness(configuration).put(CLASSES, make_queue("q"), make_queue("p"))
        harness.put(make_node("n1"), make_gang("old", 4, queue="q", node="n1"))
        harness.put(make_gang("new", 2, cpu=2, queue="q", priority_class="high"))
        assert sorted(harness.run(0).evicted) == ["old-0", "old-1", "old-2", "old-3"]
        return harness

    return make


def stop(harness, name="old"):
    harness.drop(*(f"{name}-{number}" for number in range(4)))


def test_another_queue_does_not_take_the_resources_while_the_evicted_pods_stop(preempting):
    """Two victims have stopped, and a pod of the idle queue would fit."""
    harness = preempting()
    harness.drop("old-0", "old-1")
    harness.put(make_gang("other", 1, queue="p"))
    assert harness.run(1).bound == {}


def test_another_queue_does_not_take_the_resources_when_the_evicted_pods_have_stopped(preempting):
    harness = preempting()
    harness.put(make_gang("other", 4, queue="p"))
    assert harness.run(1).bound == {}
    stop(harness)
    assert sorted(harness.run(30).bound) == ["new-0", "new-1"]
    assert not harness.job("new").victims


def test_with_the_rules_of_kube_batch_the_queues_decide(preempting):
    harness = preempting(CONFIGURATION.replace("rules: fairlead", "rules: kube-batch"))
    harness.put(make_gang("other", 4, queue="p"))
    stop(harness)
    assert sorted(harness.run(30).bound) == ["other-0", "other-1", "other-2", "other-3"]


def test_a_job_that_would_preempt_the_job_takes_the_resources(preempting):
    """Otherwise, the next session would evict the job for it."""
    harness = preempting()
    harness.put(make_gang("top", 2, cpu=2, queue="q", priority_class="top"))
    stop(harness)
    assert sorted(harness.run(30).bound) == ["top-0", "top-1"]


def test_a_job_does_not_give_precedence_to_itself(preempting):
    """Without the plugin priority, every job may preempt every other job of its queue."""
    harness = preempting(CONFIGURATION.replace("{name: priority}, ", ""))
    harness.put(make_gang("other", 4, queue="p"))
    stop(harness)
    assert sorted(harness.run(30).bound) == ["new-0", "new-1"]


def test_an_observer_sees_the_session_before_these_placements(preempting):
    harness, verbs = preempting(), []
    stop(harness)
    observer = SimpleNamespace(
        opened=lambda _session: verbs.append("opened"),
        note=lambda step: verbs.append(step.verb),
        closing=lambda _session: None,
    )
    harness.run(30, observer=observer)
    assert verbs.index("opened") < verbs.index("allocate") < verbs.index("action")


def test_a_job_that_no_longer_fits_does_not_hold_back_others(preempting):
    """The node becomes smaller before the gang has started."""
    harness = preempting()
    stop(harness)
    harness.put(make_node("n1", cpu="3"), make_gang("other", 3, queue="p"))
    assert sorted(harness.run(30).bound) == ["other-0", "other-1", "other-2"]


def test_the_reservation_of_the_last_session_does_not_hide_the_resources(make_harness, statuses):
    harness = make_harness("fairlead").put(CLASSES, make_node("n1"))
    harness.put(make_gang("old", 4, priority_class="top", node="n1"), make_gang("new", 2, cpu=2))
    harness.run(0)
    harness.run(600)
    assert harness.job("new").reserved_nodes == ("n1",)
    for number in range(4):
        task = harness.task(f"old-{number}")
        harness.session().evict(task, "reclaim")
        harness.job("new").victims.add(task.id)
    place_in_freed_room(harness.session(601))
    assert statuses(harness, "new") == {"PIPELINED": 2}
