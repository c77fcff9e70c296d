"""EvictionSearch: the victims that it evicts for a task, and tasks for which it finds none."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.actions.eviction_search import PREEMPTION, EvictionSearch, victim_pools
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.statement import ImmediateOperations, Statement
from fairlead.testing.batch_builders import make_gang, make_group, make_priority_class, make_task
from fairlead.testing.builders import make_node

CLASSES = (make_priority_class("high", 10), make_priority_class("low", 1))
BOUND = {"phase": "Pending"}
PODS = """\
actions: "preempt"
rules: fairlead
victims: pods
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
GANGS = PODS.replace("victims: pods\n", "")


def searched(harness, taker, operations=Statement):
    """Return whether the search pipelines each task of `taker`, and the names of the victims."""
    session = harness.session()
    job, steps = harness.job(taker), operations(session)
    others = [other for other in session.jobs.values() if other is not job]
    pools = victim_pools(session, PREEMPTION, others)
    search = EvictionSearch(session, PREEMPTION, pools, job, lambda _, task: task.job is not job)
    found = [search.make_room(steps, task) for _, task in sorted(job.tasks.items())]
    steps.commit()
    tasks = (task for other in others for task in other.with_status(TaskStatus.RELEASING))
    leaving = {task.key.removeprefix("default/") for task in tasks}
    return found, leaving


def harness_with(make_harness, configuration, *objects):
    return make_harness(configuration).put(CLASSES, make_node("n1"), *objects)


def old(members, minimum):
    return make_gang("old", members, min_member=minimum, node="n1", priority_class="low")


def new(**task):
    return make_gang("new", 1, priority_class="high", **task)


@pytest.mark.parametrize(("cpu", "expected"), [(2, True), ("2001m", False), (3, False)])
def test_only_the_members_that_a_gang_can_spare_count(make_harness, cpu, expected):
    """The gang has four members and a minimum of two, so at most two are victims."""
    harness = harness_with(make_harness, PODS, old(4, 2), new(cpu=cpu))
    found, leaving = searched(harness, "new")
    assert found == [expected]
    assert leaving == ({"old-2", "old-3"} if expected else set())


def test_evictions_free_only_the_resources_of_the_victims(make_harness):
    """The gang needs the member with all the memory, so evictions free no memory."""
    harness = make_harness(PODS).put(CLASSES, make_node("n1", memory="1Gi"))
    harness.put(make_group("old", 2), make_task("old-0", "old", node="n1", memory="1Gi"))
    harness.put([make_task(f"old-{n}", "old", node="n1", memory="0") for n in (1, 2)])
    harness.put(make_gang("new", 1, priority_class="high", memory="1"))
    assert searched(harness, "new") == ([False], set())


def test_a_gang_with_members_that_do_not_run_yet_is_skipped(make_harness):
    """The next gang is evicted instead, although its priority is higher."""
    harness = harness_with(make_harness, GANGS, make_priority_class("lowest", 0), new())
    group, running, _ = make_gang("starting", 2, node="n1", priority_class="lowest")
    harness.put(group, running, make_task("starting-1", "starting", node="n1", status=BOUND))
    harness.put(make_gang("old", 2, node="n1", priority_class="low"))
    assert searched(harness, "new") == ([True], {"old-0", "old-1"})


@pytest.mark.parametrize("configuration", [PODS, GANGS], ids=["pods", "gangs"])
@pytest.mark.parametrize("cpu", [1, 9], ids=["occupied", "never"])
def test_no_node_is_found_for_a_task_equal_to_an_unschedulable_task(
    make_harness, configuration, cpu
):
    """No running task may be evicted, so the search finds no node for either of two equal tasks."""
    critical = {"priorityClassName": "system-node-critical"}
    harness = harness_with(make_harness, configuration, make_group("old", 1))
    harness.put([make_task(f"old-{n}", "old", node="n1", spec=critical) for n in range(4)])
    harness.put(make_gang("new", 2, priority_class="high", cpu=cpu))
    assert searched(harness, "new") == ([False, False], set())


def test_no_node_is_found_if_no_job_may_lose_tasks(make_harness):
    found, leaving = searched(harness_with(make_harness, PODS, old(4, 4), new()), "new")
    assert (found, leaving) == ([False], set())


def test_a_task_may_need_all_resources_of_a_node(make_harness):
    found, leaving = searched(harness_with(make_harness, PODS, old(4, 0), new(cpu=4)), "new")
    assert (found, leaving) == ([True], {f"old-{n}" for n in range(4)})


@pytest.mark.parametrize(
    ("operations", "expected"), [(Statement, True), (ImmediateOperations, False)]
)
def test_idle_resources_are_used_without_victims(make_harness, operations, expected):
    """With final operations, the search leaves such a task to the action allocate."""
    harness = harness_with(make_harness, PODS, old(2, 0), new())
    assert searched(harness, "new", operations) == ([expected], set())


def test_immediate_operations_also_use_releasing_resources(make_harness):
    harness = harness_with(make_harness, PODS, old(2, 0), new())
    harness.put([make_task(f"leaving-{n}", node="n1", terminating=True) for n in range(2)])
    found, leaving = searched(harness, "new", ImmediateOperations)
    assert (found, leaving) == ([True], {"leaving-0", "leaving-1"})  # and no other victims
