"""Feasible and best nodes of a task for idle, future and ignored resources."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.batch.defect import FIXED, UPSTREAM, BatchDefects, Defect
from fairlead.engine.batch.session.statement import Statement
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.resource_columns import CPU
from fairlead.testing.batch_builders import make_gang, make_queue, make_task
from fairlead.testing.builders import make_node


def names(session, choice, task):
    found = choice.find(task.info)
    return sorted(session.table.at(row).name for row in found.plan.rows[found.positions()])


@pytest.fixture
def harness(harness):
    """A task fits on n1 now, on n2 later, on n3 never; n4 is excluded."""
    harness.put(make_node("n1", cpu="1"), make_node("n2", cpu="1"), make_node("n3", cpu="1"))
    harness.put(make_node("n4", taints=["k:NoSchedule"]), make_gang("g", 1, cpu=1))
    harness.put(make_task("leaving", node="n2", terminating=True), make_task("stays", node="n3"))
    return harness


def test_feasible_nodes_differ_for_idle_future_and_ignored_resources(harness):
    session, task = harness.session(), harness.task("g-0")
    choices = session.choices(task.job)
    assert names(session, choices.now, task) == ["n1"]
    assert names(session, choices.either, task) == ["n1", "n2"]
    assert names(session, choices.ignoring_resources, task) == ["n1", "n2", "n3"]


def test_future_resources_include_idle_resources(harness):
    session, task = harness.session(), harness.task("g-0")
    assert names(session, session.choices(task.job).later, task) == ["n1", "n2"]


def test_future_resources_of_kube_batch_exclude_idle_resources(make_harness):
    harness = make_harness("kube-batch", defects=UPSTREAM).put(
        make_queue("default"), make_gang("g", 1)
    )
    harness.put(make_node("n1"), make_node("n2"), make_task("old", node="n2", terminating=True))
    session, task = harness.session(), harness.task("g-0")
    assert names(session, session.choices(task.job).later, task) == ["n2"]


def test_feasible_nodes_follow_the_operations_of_a_statement(harness):
    """Discarding the statement restores the earlier result."""
    session, task = harness.session(), harness.task("g-0")
    now, statement = session.choices(task.job).now, Statement(session)
    statement.allocate(harness.task("g-0"), harness.cluster.table.find("n1"))
    assert names(session, now, task) == []
    statement.discard()
    assert names(session, now, task) == ["n1"]


def test_pipelined_tasks_use_idle_resources_beyond_the_releasing_ones(harness):
    harness.put(make_gang("h", 2, cpu=1))
    session = harness.session()
    n1, statement = harness.cluster.table.find("n1"), Statement(session)
    statement.pipeline(harness.task("h-0"), n1)
    assert names(session, session.choices(harness.job("g")).now, harness.task("g-0")) == []
    assert session.room.shared.idle(0, n1.row) == 0


def test_reserved_resources_are_available_to_one_job_only(harness):
    session, task = harness.session(), harness.task("g-0")
    held = session.room.idle.copy()
    session.room.reserve(held)
    shared, whole = session.policy.choices.shared.now, session.policy.choices.whole.now
    assert (names(session, shared, task), names(session, whole, task)) == ([], ["n1"])
    session.room.reserve(None)
    assert names(session, shared, task) == ["n1"]


IGNORES_IDLE = BatchDefects(FIXED.present | {Defect.EVICT_IGNORES_IDLE})


@pytest.mark.parametrize("defects", [FIXED, IGNORES_IDLE], ids=["fixed", "evict-ignores-idle"])
@pytest.mark.parametrize(
    ("held", "fits"),
    [
        pytest.param(2_000, True, id="less than the idle amount"),
        pytest.param(4_000, True, id="the idle amount"),
        pytest.param(5_000, True, id="idle and releasing amounts"),
        pytest.param(6_000, False, id="too much"),
    ],
)
def test_a_reserved_amount_is_subtracted_once(make_harness, defects, held, fits):
    """Four of the eight cores are idle, and four are releasing; the task needs three of them."""
    harness = make_harness("fairlead", defects=defects).put(make_node("n1", cpu="8"))
    harness.put(make_task("old", cpu=4, node="n1", terminating=True), make_gang("g", 1, cpu=3))
    session, row = harness.session(), harness.cluster.table.find("n1").row
    amounts = np.zeros_like(session.room.idle)
    amounts[CPU, row] = held
    session.room.reserve(amounts)
    found = names(session, session.policy.choices.shared.later, harness.task("g-0"))
    assert found == ["n1"] * fits
    view, remaining = session.room.shared, 4_000 - max(held - 4_000, 0)
    assert view.releasing(CPU, row) == remaining
    assert view.releasing_many(CPU, np.array([row])).tolist() == [remaining]


def test_the_best_node_is_picked_and_ties_are_broken_at_random(make_harness):
    harness = make_harness("fairlead")
    harness.put(make_node("small", cpu="2"), make_node("n1"), make_node("n2"), make_gang("g", 1))
    session, task = harness.session(), harness.task("g-0")
    now = session.choices(task.job).now
    picked = {now.pick(task.info, TieBreak(seed)).name for seed in range(20)}
    assert picked == {"n1", "n2"}


def test_nodes_are_ranked_by_score_and_then_by_name_descending(make_harness):
    """This is kube-batch's order when it looks for victims."""
    harness = make_harness("kube-batch")
    harness.put(make_node("small", cpu="2"), make_node("n1"), make_node("n2"), make_gang("g", 1))
    session, task = harness.session(), harness.task("g-0")
    among = session.table.allocatable[0] > 0
    ignoring_resources = session.choices(task.job).ignoring_resources

    def ranked():
        return [session.table.at(row).name for row in ignoring_resources.ranked(task.info, among)]

    assert ranked() == ["n2", "n1", "small"]
    among[session.table.find("n1").row] = False
    assert ranked() == ["n2", "small"]


def test_no_node_is_picked_in_a_cluster_without_nodes(make_harness):
    harness = make_harness("fairlead").put(make_gang("g", 1))
    session, task = harness.session(), harness.task("g-0")
    assert session.choices(task.job).now.pick(task.info, TieBreak(0)) is None


# --- what is on nodes ------------------------------------------------------------------------


def test_kube_batch_excludes_nodes_that_are_used_beyond_their_allocatable(make_harness):
    harness = make_harness("kube-batch").put(
        make_queue("default"), make_gang("g", 1, cpu=0, memory="0")
    )
    harness.put(make_node("n1", cpu="1"), make_task("a", node="n1"), make_task("b", node="n1"))
    assert harness.run().bound == {}


def test_fairlead_places_best_effort_tasks_on_overused_nodes(harness):
    harness.put(make_task("b", node="n3"), make_gang("tiny", 1, cpu=0))
    session = harness.session()
    task = harness.task("tiny-0")
    assert "n3" in names(session, session.choices(task.job).ignoring_resources, task)


def test_terminating_pods_count_towards_the_pod_limit(make_harness):
    harness = make_harness("fairlead").put(make_node("n1", pods=1), make_gang("g", 1, cpu=0))
    harness.put(make_task("old", node="n1", cpu=0, terminating=True))
    assert harness.run().bound == {}
    harness.drop("old")
    assert harness.run().bound == {"g-0": "n1"}


def test_init_containers_of_running_pods_use_no_resources_in_kube_batch(make_harness):
    """The node counts them with the pod; a session of kube-batch does not."""
    init = {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}
    for name, bound in (("kube-batch", {"g-0": "n1"}), ("fairlead", {})):
        harness = make_harness(name).put(
            make_queue("default"), make_node("n1"), make_gang("g", 1, cpu=2)
        )
        harness.put(make_task("old", node="n1", spec=init))
        assert harness.run().bound == bound


def test_pods_on_an_unknown_node_use_no_resources(make_harness):
    """Neither a terminating pod, nor a pod that kube-batch counts differently."""
    init = {"name": "i", "resources": {"requests": {"cpu": "3"}}}
    main = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    for harness in (make_harness(), make_harness("kube-batch").put(make_queue("default"))):
        harness.put(make_node("n1"), make_task("leaving", node="absent", cpu=4, terminating=True))
        odd = {"initContainers": [init], "containers": [main]}
        harness.put(make_task("odd", node="absent", spec=odd), make_gang("g", 4))
        assert harness.run().bound == {f"g-{i}": "n1" for i in range(4)}
