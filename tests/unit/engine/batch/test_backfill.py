"""The action backfill: best-effort tasks, and short jobs on reserved nodes."""

from __future__ import annotations

import pytest

from fairlead.api.objects import OwnerReference
from fairlead.engine.batch.actions.backfill import Backfill
from fairlead.testing.batch_builders import (
    make_gang,
    make_group,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_node

RUNS = "fairlead.dev/run-duration"


def test_pods_that_ask_for_nothing_are_placed_on_full_nodes(harness):
    harness.put(make_node("n1"), make_gang("full", 4, node="n1"), make_gang("g", 2, cpu=0))
    assert harness.run().bound == {"g-0": "n1", "g-1": "n1"}


def test_best_effort_members_count_for_the_minimum_of_their_gang(harness):
    harness.put(
        make_node("n1"), make_group("g", 2), make_task("big", "g"), make_task("no", "g", cpu=0)
    )
    assert harness.run().bound == {"big": "n1", "no": "n1"}


def test_best_effort_members_are_not_placed_without_their_gang(harness, statuses):
    harness.put(make_node("n1"), make_group("g", 2), make_task("large", "g", cpu=8))
    harness.put(make_task("small", "g", cpu=0))
    Backfill().execute(harness.session())
    assert statuses(harness, "g") == {"PENDING": 2}


def test_a_gang_is_not_bound_without_its_best_effort_members(harness):
    """The best-effort member fits nowhere, so the other member is not bound either."""
    choosy = {"nodeSelector": {"disk": "none"}}
    harness.put(make_node("n1"), make_group("g", 2), make_task("big", "g"))
    harness.put(make_task("no", "g", cpu=0, spec=choosy))
    assert harness.run().bound == {}
    assert harness.cluster.table.find("n1").pods == {}


# --- reservations ----------------------------------------------------------------------------


def running(name, ends_in, node, **more):
    return make_task(
        name,
        node=node,
        annotations={RUNS: ends_in},
        status={"startTime": "1970-01-01T00:00:00Z"},
        **more,
    )


@pytest.fixture
def starved(make_harness):
    """A waiting gang needs both halves of n1; the second half is free in twenty minutes."""
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2", cpu="1"))
    harness.put(running("old", "20m", "n1", cpu=2), make_gang("g", 2, cpu=2))
    harness.run(0)
    return harness


def test_other_pods_are_bound_before_the_starvation_bound(starved):
    starved.put(make_task("small"), make_task("small2"), make_task("small3"))
    assert len(starved.run(599).bound) == 3


def test_a_node_is_reserved_for_a_gang_after_the_starvation_bound(starved):
    starved.put(make_task("small"), make_task("small2"), make_task("small3"))
    found = starved.run(600)
    assert list(found.bound.values()) == ["n2"]
    assert starved.job("g").reserved_nodes == ("n1",)


def test_a_gang_with_a_reservation_starts_when_its_resources_are_free(starved):
    starved.put(make_task("small"))
    starved.run(600)
    starved.drop("old")
    assert sorted(starved.run(1200).bound) == ["g-0", "g-1"]
    assert starved.job("g").waiting_since is None
    starved.run(1201)
    assert starved.job("g").reserved_nodes == ()


def test_a_job_that_ends_in_time_is_backfilled_on_the_reserved_node(starved):
    starved.put(make_task("small"))  # takes what is not held back
    starved.put(make_gang("quick", 2, annotations={RUNS: "10m"}))
    assert starved.run(600).bound == {"small": "n2", "quick-0": "n1", "quick-1": "n1"}


@pytest.mark.parametrize("annotations", [{RUNS: "10m1s"}, {}])
def test_a_job_that_may_end_too_late_is_not_backfilled(annotations, starved):
    starved.put(make_task("small"), make_gang("slow", 1, annotations=annotations))
    assert list(starved.run(600).bound.values()) == ["n2"]


def test_a_gang_is_backfilled_as_a_whole_or_not_at_all(starved):
    starved.put(make_gang("four", 4, annotations={RUNS: "9m"}))
    assert starved.run(600).bound == {}


def test_a_session_returns_the_time_of_the_next_starvation_bound(starved):
    assert starved.run(1).wake_at == 600 * 10**9


def test_a_gang_that_can_never_fit_gets_no_reservation(make_harness):
    harness = make_harness("fairlead").put(make_node("n1"), make_gang("g", 2, cpu=8))
    harness.run(0)
    harness.put(make_task("small"))
    assert harness.run(600).bound == {"small": "n1"}


@pytest.mark.parametrize(("capability", "bound"), [("3", {"small": "n1"}), ("4", {})])
def test_a_gang_that_exceeds_the_limits_of_its_queue_gets_no_reservation(
    make_harness, capability, bound
):
    """Without this rule, the capacity stays idle although the gang cannot start there."""
    harness = make_harness("fairlead").put(make_node("n1"), make_queue("default"))
    harness.put(make_queue("q", capability={"cpu": capability}))
    harness.put(make_gang("g", 2, cpu=2, queue="q"), make_task("old", node="n1", cpu=1))
    harness.run(0)
    harness.put(make_task("small"))
    assert harness.run(600).bound == bound


def starved_below_capability(make_harness, annotations):
    """Return a harness in which tasks of queue q (capability 4) keep a gang of 4 cpu waiting."""
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"), make_queue("default"))
    harness.put(make_queue("q", capability={"cpu": "4"}))
    for number, end in enumerate(["11m", "12m", "13m", "14m"]):
        declared = {RUNS: end} if annotations else {}
        started = {"startTime": "1970-01-01T00:00:00Z"}
        name = f"s{number}"
        harness.put(make_group(f"group-{name}", 1, "q"))
        harness.put(
            make_task(name, f"group-{name}", node="n1", annotations=declared, status=started)
        )
    harness.put(make_gang("g", 2, cpu=2, queue="q"))
    harness.run(0)
    return harness.put(make_gang("next", 1, queue="q", annotations=annotations))


def test_a_queue_holds_its_limit_back_for_a_starving_gang(make_harness):
    """Node n2 has room for the gang all the time, but the queue has not."""
    harness = starved_below_capability(make_harness, {RUNS: "10m"})
    for number, end in enumerate([660, 720, 780]):
        harness.drop(f"s{number}")
        assert harness.run(end).bound == {}
        assert harness.job("g").reserved_nodes == ("n2",)
    harness.drop("s3")
    assert sorted(harness.run(840).bound) == ["g-0", "g-1"]


def test_the_limit_of_a_queue_is_held_back_only_until_the_gang_is_placed(make_harness):
    """The capability suffices for the gang and two more tasks."""
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"), make_queue("default"))
    harness.put(make_queue("q", capability={"cpu": "6"}))
    harness.put(make_gang("g", 2, cpu=2, queue="q"), make_task("old", node="n1", cpu=3))
    harness.put(make_task("other", node="n2", cpu=3))
    harness.run(0)
    harness.put(make_gang("a", 1, queue="q"), make_gang("b", 1, queue="q"))
    harness.drop("old", "other")
    assert sorted(harness.run(700).bound) == ["a-0", "b-0", "g-0", "g-1"]


@pytest.mark.parametrize(
    ("capability", "bound"),
    [("8", []), ("12", ["g-0", "g-1"]), ("16", ["next-0"])],
)
def test_a_parents_limit_is_held_back_for_a_gang_of_another_queue(make_harness, capability, bound):
    """The gang needs 8 cpu. A pod of queue `a` with 4 cpu ends at 660 s, another at 780 s."""
    harness = make_harness("fairlead").put(*map(make_node, ("n1", "n2", "n3", "n4")))
    harness.put(make_queue("team", capability={"cpu": capability}), make_queue("default"))
    harness.put(make_queue("a", parent="team"), make_queue("b", parent="team"))
    started = {"startTime": "1970-01-01T00:00:00Z"}
    for name, node, end in (("s0", "n1", "11m"), ("s1", "n2", "13m")):
        harness.put(make_group(f"group-{name}", 1, "a"))
        harness.put(make_task(name, f"group-{name}", node=node, cpu=4, annotations={RUNS: end},
                              status=started))  # fmt: skip
    harness.put(make_gang("g", 2, cpu=4, queue="b"))
    harness.run(0)
    harness.put(make_gang("next", 1, cpu=4, queue="a"))
    harness.drop("s0")
    assert sorted(harness.run(660).bound) == bound


def test_a_task_that_ends_before_the_gang_starts_may_use_the_limit_of_the_queue(make_harness):
    harness = starved_below_capability(make_harness, {RUNS: "3m"})
    harness.drop("s0")
    assert list(harness.run(660).bound) == ["next-0"]


def test_nothing_is_held_back_while_tasks_without_declared_ends_fill_the_queue(make_harness):
    harness = starved_below_capability(make_harness, {})
    harness.drop("s0")
    assert list(harness.run(660).bound) == ["next-0"]
    assert harness.job("g").reserved_nodes == ()


def test_a_gang_that_can_never_start_does_not_prevent_other_reservations(make_harness):
    harness = make_harness("fairlead").put(make_node("n1"))
    harness.put(make_gang("never", 2, cpu=8), make_task("old", node="n1", cpu=1))
    harness.put(make_gang("g", 2, cpu=2))
    harness.run(0)
    harness.put(make_task("small"))
    assert harness.run(600).bound == {}
    assert harness.job("g").reserved_nodes == ("n1",)


def test_without_known_end_times_whole_nodes_are_reserved(make_harness):
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"))
    harness.put(make_task("a", node="n1", cpu=1), make_task("b", node="n2", cpu=2))
    harness.put(make_gang("g", 2, cpu=4))
    harness.run(0)
    harness.put(make_task("small"))
    assert harness.run(600).bound == {}
    assert sorted(harness.job("g").reserved_nodes) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("kind", "ends", "nodes"),
    [
        ("ReplicaSet", {}, ()),
        ("StatefulSet", {}, ()),
        ("ReplicaSet", {RUNS: "20m"}, ("n1", "n2")),
        ("PyTorchJob", {}, ("n1", "n2")),
    ],
)
def test_no_node_is_reserved_while_a_pod_that_never_ends_is_in_the_way(
    make_harness, kind, ends, nodes
):
    """Without this rule, the free half of n1 stays idle until the owner of `web` is deleted."""
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"))
    owner = OwnerReference(api_version="v1", kind=kind, name="web", uid="u", controller=True)
    web = make_task("web", node="n1", cpu=2, annotations=ends, meta={"owner_references": (owner,)})
    harness.put(web, make_task("old", node="n2", cpu=4), make_gang("g", 2, cpu=3))
    harness.run(0)
    harness.put(make_task("small"))
    assert list(harness.run(600).bound) == ([] if nodes else ["small"])
    assert tuple(sorted(harness.job("g").reserved_nodes)) == nodes


@pytest.fixture
def two_queues(make_harness):
    """Queue a has its half of the cluster and a waiting gang; a gang of queue b holds the rest."""
    harness = make_harness("fairlead").put(make_queue("a"), make_queue("b"))
    harness.put(make_node("n1"), make_node("n2"))
    harness.put(make_gang("held", 4, queue="a", node="n1"))
    harness.put(make_gang("old", 4, queue="b", node="n2"), make_gang("starved", 2, queue="a"))
    harness.run(0)
    return harness


def test_nothing_is_reserved_for_a_queue_at_its_share_if_another_queue_would_reclaim(two_queues):
    """Without this rule, b would evict pods of a for each gang of a that starts here."""
    two_queues.put(make_gang("b1", 2, queue="b"), make_gang("b2", 2, queue="b"))
    two_queues.run(599)
    two_queues.drop("old-0", "old-1", "old-2", "old-3")
    found = two_queues.run(600)
    assert sorted(found.bound) == ["b1-0", "b1-1", "b2-0", "b2-1"]
    assert not found.evicted


def test_a_queue_at_its_share_has_a_reservation_if_no_other_queue_could_use_it(two_queues):
    """The waiting gang of b is larger than the cluster."""
    two_queues.put(make_gang("b1", 2, cpu=8, queue="b"))
    two_queues.run(600)
    assert two_queues.job("starved").reserved_nodes


@pytest.fixture
def starved_by_old(make_harness):
    """A waiting gang of low priority needs the complete node n1, half of which `old` uses."""

    def make(configuration="fairlead"):
        harness = make_harness(configuration).put(make_queue("a"), make_queue("b"))
        harness.put(make_priority_class("high", 10), make_priority_class("low", 1))
        harness.put(make_node("n1"), running("old", "20m", "n1", cpu=2))
        harness.put(make_gang("g", 2, cpu=2, priority_class="low", queue="a"))
        harness.run(0)
        return harness

    return make


def test_a_more_important_job_of_the_queue_uses_the_resources_that_a_gang_has_reserved(
    starved_by_old,
):
    """Otherwise, the gang starts first, and the next session evicts it for this job."""
    starved = starved_by_old()
    starved.put(make_gang("urgent", 1, cpu=2, priority_class="high", queue="a"))
    assert starved.run(600).bound == {"urgent-0": "n1"}
    assert starved.job("g").reserved_nodes == ("n1",)


@pytest.mark.parametrize(("priority", "queue"), [("low", "a"), ("high", "b")])
def test_a_job_that_cannot_preempt_a_gang_leaves_its_reserved_resources(
    starved_by_old, priority, queue
):
    starved = starved_by_old()
    starved.put(make_gang("other", 1, cpu=2, priority_class=priority, queue=queue))
    assert starved.run(600).bound == {}


@pytest.mark.parametrize(
    "change",
    [
        ("backfill, preempt", "backfill"),
        ("victims: gangs", "victims: pods"),
        ("{name: priority}", "{name: priority, enablePreemptable: false}"),
    ],
)
def test_reserved_resources_are_kept_if_the_configuration_preempts_no_gang(starved_by_old, change):
    configuration = """
rules: fairlead
starvationBound: 10m
victims: gangs
actions: "allocate, reclaim, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: true}]
- plugins: [{name: predicates}, {name: proportion}]
"""
    starved = starved_by_old(configuration.replace(*change))
    starved.put(make_gang("urgent", 1, cpu=2, priority_class="high", queue="a"))
    assert starved.run(600).bound == {}


def test_a_more_important_job_of_the_queue_may_use_the_limit_that_is_held_back(make_harness):
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"), make_queue("default"))
    harness.put(make_priority_class("high", 10), make_queue("q", capability={"cpu": "4"}))
    harness.put(make_group("old", 1, "q"), running("s", "11m", "n1", group="old", cpu=2))
    harness.put(make_gang("g", 2, cpu=2, queue="q"))
    harness.run(0)
    harness.put(make_gang("urgent", 1, cpu=2, queue="q", priority_class="high"))
    assert harness.run(600).bound == {"urgent-0": "n2"}
