"""Which nodes can take a task, and which is best: by room now, soon, or whatever the room."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.defect import UPSTREAM
from fairlead.engine.batch.session.statement import Statement
from fairlead.engine.core.tie_break import TieBreak
from fairlead.testing.batch_builders import make_gang, make_queue, make_task
from fairlead.testing.builders import make_node


def names(session, choice, task):
    found = choice.find(task.info)
    return sorted(session.table.at(row).name for row in found.plan.rows[found.positions()])


@pytest.fixture
def yard(yard):
    """A task fits on n1 now, on n2 later, on n3 never; n4 is excluded."""
    yard.put(make_node("n1", cpu="1"), make_node("n2", cpu="1"), make_node("n3", cpu="1"))
    yard.put(make_node("n4", taints=["k:NoSchedule"]), make_gang("g", 1, cpu=1))
    yard.put(make_task("leaving", node="n2", terminating=True), make_task("stays", node="n3"))
    return yard


def test_four_questions(yard):
    session, task = yard.session(), yard.task("g-0")
    choices = session.choices(task.job)
    assert names(session, choices.now, task) == ["n1"]
    assert names(session, choices.either, task) == ["n1", "n2"]
    assert names(session, choices.ignoring_resources, task) == ["n1", "n2", "n3"]


def test_what_is_free_counts_as_room_to_come(yard):
    session, task = yard.session(), yard.task("g-0")
    assert names(session, session.choices(task.job).later, task) == ["n1", "n2"]


def test_for_kube_batch_it_does_not(yards):
    yard = yards("kube-batch", defects=UPSTREAM).put(make_queue("default"), make_gang("g", 1))
    yard.put(make_node("n1"), make_node("n2"), make_task("old", node="n2", terminating=True))
    session, task = yard.session(), yard.task("g-0")
    assert names(session, session.choices(task.job).later, task) == ["n2"]


def test_answers_follow_what_is_supposed(yard):
    """Reverting a hypothesis changes the results back."""
    session, task = yard.session(), yard.task("g-0")
    now, statement = session.choices(task.job).now, Statement(session)
    statement.allocate(yard.task("g-0"), yard.cluster.table.find("n1"))
    assert names(session, now, task) == []
    statement.discard()
    assert names(session, now, task) == ["n1"]


def test_a_promise_takes_what_is_free_when_more_is_promised_than_leaves(yard):
    yard.put(make_gang("h", 2, cpu=1))
    session = yard.session()
    n1, statement = yard.cluster.table.find("n1"), Statement(session)
    statement.pipeline(yard.task("h-0"), n1)
    assert names(session, session.choices(yard.job("g")).now, yard.task("g-0")) == []
    assert session.room.shared.idle(0, n1.row) == 0


def test_held_back_room_is_for_one_job_only(yard):
    session, task = yard.session(), yard.task("g-0")
    held = session.room.idle.copy()
    session.room.hold_back(held)
    shared, whole = session.policy.choices.shared.now, session.policy.choices.whole.now
    assert (names(session, shared, task), names(session, whole, task)) == ([], ["n1"])
    session.room.hold_back(None)
    assert names(session, shared, task) == ["n1"]


def test_the_best_is_picked_and_chance_decides_among_equals(yards):
    yard = yards("fairlead")
    yard.put(make_node("small", cpu="2"), make_node("n1"), make_node("n2"), make_gang("g", 1))
    session, task = yard.session(), yard.task("g-0")
    now = session.choices(task.job).now
    picked = {now.pick(task.info, TieBreak(seed)).name for seed in range(20)}
    assert picked == {"n1", "n2"}


def test_nodes_are_ranked_best_first_and_equals_by_name_backwards(yards):
    """This is kube-batch's order when it looks for victims."""
    yard = yards("kube-batch")
    yard.put(make_node("small", cpu="2"), make_node("n1"), make_node("n2"), make_gang("g", 1))
    session, task = yard.session(), yard.task("g-0")
    among = session.table.allocatable[0] > 0
    ignoring_resources = session.choices(task.job).ignoring_resources

    def ranked():
        return [session.table.at(row).name for row in ignoring_resources.ranked(task.info, among)]

    assert ranked() == ["n2", "n1", "small"]
    among[session.table.find("n1").row] = False
    assert ranked() == ["n2", "small"]


def test_no_node_no_choice(yards):
    yard = yards("fairlead").put(make_gang("g", 1))
    session, task = yard.session(), yard.task("g-0")
    assert session.choices(task.job).now.pick(task.info, TieBreak(0)) is None


# --- what is on nodes ------------------------------------------------------------------------


def test_a_node_used_beyond_what_it_offers_is_left_out_by_kube_batch(yards):
    yard = yards("kube-batch").put(make_queue("default"), make_gang("g", 1, cpu=0, memory="0"))
    yard.put(make_node("n1", cpu="1"), make_task("a", node="n1"), make_task("b", node="n1"))
    assert yard.run().bound == {}


def test_not_by_us_what_asks_for_nothing_can_run_there(yard):
    yard.put(make_task("b", node="n3"), make_gang("tiny", 1, cpu=0))
    session = yard.session()
    task = yard.task("tiny-0")
    assert "n3" in names(session, session.choices(task.job).ignoring_resources, task)


def test_pods_that_are_leaving_still_count_as_pods(yards):
    yard = yards("fairlead").put(make_node("n1", pods=1), make_gang("g", 1, cpu=0))
    yard.put(make_task("old", node="n1", cpu=0, terminating=True))
    assert yard.run().bound == {}
    yard.drop("old")
    assert yard.run().bound == {"g-0": "n1"}


def test_init_containers_hold_no_room_in_kube_batch(yards):
    """The node counts them with the pod; a session of kube-batch does not."""
    init = {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}
    for name, bound in (("kube-batch", {"g-0": "n1"}), ("fairlead", {})):
        yard = yards(name).put(make_queue("default"), make_node("n1"), make_gang("g", 1, cpu=2))
        yard.put(make_task("old", node="n1", spec=init))
        assert yard.run().bound == bound


def test_pods_on_a_node_that_is_not_there_take_no_room(yards):
    """Neither one that is leaving, nor one that kube-batch counts otherwise."""
    init = {"name": "i", "resources": {"requests": {"cpu": "3"}}}
    main = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    for yard in (yards(), yards("kube-batch").put(make_queue("default"))):
        yard.put(make_node("n1"), make_task("leaving", node="absent", cpu=4, terminating=True))
        odd = {"initContainers": [init], "containers": [main]}
        yard.put(make_task("odd", node="absent", spec=odd), make_gang("g", 4))
        assert yard.run().bound == {f"g-{i}": "n1" for i in range(4)}
