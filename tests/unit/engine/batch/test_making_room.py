"""The actions preempt and reclaim: which tasks are evicted for which tasks."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.defect import FIXED, UPSTREAM, BatchDefects, Defect
from fairlead.testing.batch_builders import (
    make_gang,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_node

CLASSES = (make_priority_class("high", 10), make_priority_class("low", 1))

PREEMPT = """\
actions: "allocate, preempt"
rules: fairlead
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
PER_POD = PREEMPT.replace("rules: fairlead", "rules: kube-batch")


@pytest.fixture
def harness(make_harness):
    """A cluster with two priority classes and one node of four CPUs."""
    return make_harness("fairlead").put(CLASSES, make_node("n1"))


def low(name, members, **more):
    return make_gang(name, members, priority_class="low", **more)


def high(name, members, **more):
    return make_gang(name, members, priority_class="high", **more)


# --- preempt ---------------------------------------------------------------------------------


def test_a_gang_of_higher_priority_evicts_surplus_members(harness):
    harness.put(low("old", 4, min_member=2, node="n1"), high("new", 2))
    assert harness.run().evicted == {"old-3": "preempt", "old-2": "preempt"}


def test_preemption_does_not_evict_members_within_the_minimum(harness, statuses):
    harness.put(low("old", 4, min_member=3, node="n1"), high("new", 1))
    assert len(harness.run().evicted) == 1
    assert statuses(harness, "old") == {"RUNNING": 3, "RELEASING": 1}


def test_a_gang_without_surplus_members_is_evicted_as_a_whole(harness):
    harness.put(low("old", 4, node="n1"), high("new", 1))
    assert len(harness.run().evicted) == 4


def test_the_members_of_an_evicted_gang_on_other_nodes_are_evicted(harness):
    harness.put(make_node("n2"))
    harness.put(low("old", 8, node=["n1"] * 4 + ["n2"] * 4), high("new", 4))
    assert len(harness.run().evicted) == 8


def test_one_gang_is_evicted_instead_of_members_of_two_gangs(harness):
    harness.put(low("a", 2, node="n1"), low("b", 2, node="n1"), high("new", 2))
    evicted = sorted(harness.run().evicted)
    assert evicted == ["b-0", "b-1"]


def test_a_gang_whose_eviction_frees_too_little_is_skipped(harness):
    harness.put(make_priority_class("lowest", 0))
    harness.put(make_gang("small", 1, priority_class="lowest", node="n1"), low("old", 3, node="n1"))
    harness.put(high("new", 1, cpu=3))
    assert sorted(harness.run().evicted) == ["old-0", "old-1", "old-2"]


def test_surplus_members_are_evicted_before_whole_gangs(harness):
    harness.put(
        low("whole", 2, node="n1"), low("spare", 2, min_member=0, node="n1"), high("new", 2)
    )
    assert sorted(harness.run().evicted) == ["spare-0", "spare-1"]


def test_a_gang_with_a_critical_member_is_not_evicted(harness):
    critical = {"priorityClassName": "system-node-critical"}
    harness.put(low("old", 3, node="n1"), high("new", 2))
    harness.put(make_task("old-0", "old", node="n1", spec=critical))
    assert harness.run().evicted == {}


@pytest.mark.parametrize(("victims", "evicted"), [("gangs", 4), ("pods", 0)])
def test_the_eviction_of_whole_gangs_can_be_configured(victims, evicted, make_harness):
    harness = make_harness(f"{PREEMPT}victims: {victims}\n").put(CLASSES, make_node("n1"))
    harness.put(low("old", 4, node="n1"), high("new", 1))
    assert len(harness.run().evicted) == evicted


def test_per_pod_victims_do_not_break_gangs(make_harness):
    """By kube-batch's rules, only members beyond the minimum are victims."""
    harness = make_harness(PER_POD).put(make_queue("default"), CLASSES, make_node("n1"))
    harness.put(low("old", 4, node="n1"), high("new", 1))
    assert harness.run().evicted == {}


def test_no_task_is_evicted_for_a_gang_that_cannot_be_completed(harness):
    harness.put(low("old", 4, min_member=0, node="n1"), high("new", 5))
    assert harness.run().evicted == {}


def test_no_task_is_evicted_for_a_task_of_equal_priority(harness):
    harness.put(low("old", 4, min_member=0, node="n1"), low("new", 1))
    assert harness.run().evicted == {}


def test_no_task_is_evicted_for_a_best_effort_task(make_harness):
    for defects, victims in ((FIXED, 0), (UPSTREAM, 1)):
        harness = make_harness(PREEMPT.replace("allocate, ", ""), defects=defects)
        harness.put(make_queue("default"), CLASSES, make_node("n1"))
        harness.put(low("old", 4, min_member=0, node="n1"), high("new", 1, cpu=0))
        assert len(harness.run().evicted) == victims


def test_no_task_is_evicted_while_resources_are_idle(harness):
    harness.put(low("old", 3, min_member=0, node="n1"), high("new", 2))
    assert len(harness.run().evicted) == 1


@pytest.mark.parametrize("members", [1, 2])
def test_a_queue_at_its_capability_preempts_although_a_node_is_idle(harness, members):
    harness.put(make_node("n2"), make_queue("q", capability={"cpu": "3"}))
    harness.put(low("old", 3, min_member=1, queue="q", node="n1"), high("new", members, queue="q"))
    assert len(harness.run().evicted) == members


def test_a_gang_is_preempted_as_a_whole_if_its_queue_is_at_its_capability(harness):
    harness.put(make_node("n2"), make_node("n3"), make_queue("q", capability={"cpu": "6"}))
    harness.put(low("old", 6, queue="q", node=["n1"] * 3 + ["n2"] * 3), high("new", 1, queue="q"))
    assert len(harness.run().evicted) == 6


def test_within_a_job_tasks_are_evicted_for_tasks_of_higher_priority(harness):
    harness.put(low("g", 4, min_member=1, node="n1", priority=1))
    harness.put(make_task("boss", "g", priority=5))
    assert harness.run().evicted == {"g-3": "preempt"}


def test_each_task_of_higher_priority_within_a_job_may_preempt(make_harness):
    """By kube-batch's rules, the first task has already been tried in preemption between jobs."""
    harness = make_harness(PER_POD).put(make_queue("default"), CLASSES, make_node("n1"))
    harness.put(low("g", 4, min_member=1, node="n1", priority=1))
    harness.put(*(make_task(f"boss-{i}", "g", priority=5) for i in range(3)))
    assert harness.run().evicted == {"g-3": "preempt", "g-2": "preempt"}


def test_within_a_job_no_task_is_evicted_for_a_task_of_lower_priority(harness):
    harness.put(
        low("g", 4, min_member=1, node="n1", priority=5), make_task("small", "g", priority=1)
    )
    assert harness.run().evicted == {}


def test_members_of_equal_priority_stay_without_the_plugin_priority_too(make_harness):
    """Neither members of the same job nor those of other jobs are evicted for the new member."""
    harness = make_harness(PREEMPT.replace("{name: priority}, ", "")).put(CLASSES, make_node("n1"))
    harness.put(low("g", 2, min_member=1, node="n1", priority=5), make_task("g-2", "g", priority=5))
    harness.put(make_gang("other", 2, min_member=0, node="n1", priority=1)[1:])
    assert harness.run().evicted == {}


def test_a_task_that_needs_no_eviction_is_left_to_allocate(make_harness):
    """Without the action allocate, both new members find the same room, and nothing is evicted."""
    harness = make_harness(PREEMPT.replace("allocate, ", "")).put(CLASSES, make_node("n1"))
    harness.put(low("g", 3, min_member=1, node="n1", priority=1))
    harness.put(make_task("boss-0", "g", priority=5), make_task("boss-1", "g", priority=5))
    assert harness.run().evicted == {}


def test_queues_preempt_in_queue_order(make_harness):
    """q1 has a smaller share of the cluster, although its job was created later."""
    tiers = "{name: gang}, {name: proportion}, {name: conformance}"
    harness = make_harness(PREEMPT.replace("{name: gang}, {name: conformance}", tiers))
    two_queues(harness.put(CLASSES, make_node("n1"), make_node("n2")))
    harness.put(low("old-2", 5, min_member=0, queue="q2", node=["n1"] * 4 + ["n2"]))
    harness.put(high("new-2", 1, queue="q2"))
    harness.put(low("old-1", 3, min_member=0, queue="q1", node="n2"), high("new-1", 1, queue="q1"))
    assert [name.rpartition("-")[0] for name in harness.run().evicted] == ["old-1", "old-2"]


def test_idle_resources_of_a_pipelined_gang_stay_reserved_until_it_starts(harness):
    """While the gang waits for its victims to terminate, its idle share is not given away."""
    harness.put(low("old", 3, min_member=0, node="n1"), high("new", 2))
    assert harness.run().evicted == {"old-2": "preempt"}
    found = harness.put(low("later", 1)).run()
    assert (found.evicted, found.bound) == ({}, {})
    harness.drop("old-2")
    assert sorted(harness.run().bound) == ["new-0", "new-1"]


def test_terminating_pods_also_free_resources(harness):
    harness.put(low("old", 2, min_member=0, node="n1"), high("new", 1, cpu=3))
    harness.put(make_task("leaving", node="n1", terminating=True))
    assert harness.run().evicted == {"old-1": "preempt"}


# --- reclaim ---------------------------------------------------------------------------------


def two_queues(harness, weights=(1, 1)):
    return harness.put(make_queue("q1", weights[0]), make_queue("q2", weights[1]))


def test_a_queue_reclaims_its_share(harness):
    two_queues(harness).put(make_gang("a", 4, min_member=1, queue="q1", node="n1"))
    harness.put(make_gang("b", 2, queue="q2"))
    assert harness.run().evicted == {"a-3": "reclaim", "a-2": "reclaim"}


def test_with_one_task_at_a_time_the_evictions_for_a_task_are_kept(make_harness):
    """The defect reclaim-one-task without reclaim-no-gang, which makes every eviction final."""
    defects = BatchDefects(FIXED.present | {Defect.RECLAIM_ONE_TASK})
    harness = two_queues(make_harness("fairlead", defects=defects).put(make_node("n1")))
    harness.put(
        make_gang("a", 4, min_member=1, queue="q1", node="n1"), make_gang("b", 1, queue="q2")
    )
    assert harness.run().evicted == {"a-3": "reclaim"}


RECLAIM_FIRST = """\
actions: "reclaim, allocate"
rules: fairlead
tiers: [{plugins: [{name: gang}, {name: proportion}, {name: predicates}]}]
"""
ONE_TASK = frozenset({Defect.RECLAIM_ONE_TASK})


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ({"cpu": "0", "memory": "9Gi"}, ()),  # fits on no node
        ({"cpu": 1}, ()),  # its queue has its share of cpu
        ({"cpu": "0", "memory": "1Mi"}, {Defect.EVICT_IGNORES_IDLE}),  # needs no eviction
    ],
    ids=["no room", "share", "idle"],
)
def test_with_one_task_at_a_time_a_failure_ends_the_turns_of_a_queue(make_harness, first, more):
    """The task of job c could reclaim, but the queue is dropped after the task of job b."""
    for jobs, evicted in (((), {"a-2": "reclaim"}), ([make_gang("b", 1, queue="q2", **first)], {})):
        harness = make_harness(
            RECLAIM_FIRST, defects=BatchDefects(FIXED.present | ONE_TASK | set(more))
        )
        two_queues(harness).put(make_node("n1", cpu="4", memory="8400Mi"))
        spare = make_gang("a", 3, min_member=0, queue="q1", node="n1", cpu="667m", memory="2100Mi")
        harness.put(
            spare, make_gang("held", 1, queue="q2", node="n1", cpu=2, memory="2000Mi"), jobs
        )
        harness.put(make_gang("c", 1, queue="q2", cpu="0", memory="2100Mi"))
        harness.put(make_gang("z", 1, queue="q2", cpu="0", memory="9Gi"))
        assert harness.run().evicted == evicted


def test_with_one_task_at_a_time_each_success_gives_a_queue_another_turn(make_harness):
    harness = two_queues(make_harness("fairlead", defects=BatchDefects(FIXED.present | ONE_TASK)))
    harness.put(make_node("n1"), make_gang("a", 4, min_member=0, queue="q1", node="n1"))
    harness.put(make_gang("b", 1, queue="q2"), make_gang("c", 1, queue="q2"))
    assert sorted(harness.run().evicted) == ["a-2", "a-3"]


def test_a_queue_without_waiting_jobs_does_not_end_the_turns_of_others(harness):
    harness.put(make_queue("q0", 9), make_node("n2", cpu="1"))
    harness.put(make_gang("idle", 1, queue="q0", node="n2"))
    two_queues(harness).put(make_gang("a", 4, min_member=0, queue="q1", node="n1"))
    harness.put(make_gang("b", 2, queue="q2"))
    assert sorted(harness.run().evicted) == ["a-2", "a-3"]


def test_reclaim_skips_a_task_that_does_not_fit(harness):
    two_queues(harness).put(make_gang("a", 4, min_member=0, queue="q1", node="n1"))
    harness.put(make_gang("b", 1, min_member=0, queue="q2"), make_task("b-first", "b", cpu=9))
    assert harness.run().evicted == {"a-3": "reclaim"}


def test_a_job_that_can_start_reclaims_for_its_other_tasks_in_later_turns(harness):
    """Both jobs need one task to start, so each gets one before either gets two."""
    two_queues(harness).put(make_gang("a", 4, min_member=0, queue="q1", node="n1"))
    harness.put(
        make_gang("b", 2, min_member=1, queue="q2"), make_gang("c", 2, min_member=1, queue="q2")
    )
    found = harness.run()
    assert len(found.evicted) == 2
    assert [len(found.reports[job].waiting) for job in "bc"] == [1, 1]


def test_a_job_reclaims_until_its_queue_has_its_share(harness):
    two_queues(harness).put(make_gang("a", 4, min_member=0, queue="q1", node="n1"))
    harness.put(make_gang("b", 4, min_member=1, queue="q2"))
    assert sorted(harness.run().evicted) == ["a-2", "a-3"]


def test_nothing_is_reclaimed_for_tasks_that_request_nothing(harness):
    """Not even on a node with room for no further pod."""
    two_queues(harness).put(make_node("n1", pods="4"))
    harness.put(make_gang("a", 4, min_member=1, queue="q1", node="n1"))
    harness.put(make_gang("b", 1, queue="q2", cpu=0))
    assert harness.run().evicted == {}


def test_no_queue_is_reclaimed_below_its_share(harness):
    two_queues(harness, (3, 1)).put(make_gang("a", 4, min_member=1, queue="q1", node="n1"))
    harness.put(make_gang("b", 2, min_member=1, queue="q2"))
    assert harness.run().evicted == {"a-3": "reclaim"}


def test_a_gang_that_waits_for_room_does_not_put_its_queue_above_its_share(harness):
    """q1 runs one task and deserves four; its gang needs the two CPUs that are still in use."""
    two_queues(harness, (2, 1)).put(make_node("n1", cpu="6"))
    harness.put(make_gang("a", 1, queue="q1", node="n1"), make_gang("waiting", 4, queue="q1"))
    harness.put(make_gang("c", 1, queue="q2", node="n1"), make_gang("b", 1, queue="q2"))
    ending = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
    harness.put(make_gang("ending", 2, queue="q2", node="n1", meta=ending))
    found = harness.run()
    assert (found.bound, found.evicted) == ({}, {})


def test_a_queue_that_is_not_reclaimable_keeps_its_tasks(harness):
    harness.put(make_queue("q1", reclaimable=False), make_queue("q2"))
    harness.put(
        make_gang("a", 4, min_member=1, queue="q1", node="n1"), make_gang("b", 2, queue="q2")
    )
    assert harness.run().evicted == {}


def test_nothing_is_reclaimed_for_a_gang_that_cannot_be_completed(harness):
    two_queues(harness).put(make_gang("a", 4, min_member=1, queue="q1", node="n1"))
    harness.put(make_gang("b", 3, queue="q2"))
    assert harness.run().evicted == {}


def test_nothing_is_reclaimed_while_resources_are_idle(make_harness):
    harness = make_harness(RECLAIM_FIRST)
    two_queues(harness).put(make_node("n1"), make_node("n2"))
    harness.put(
        make_gang("a", 4, min_member=1, queue="q1", node="n1"), make_gang("b", 2, queue="q2")
    )
    found = harness.run()
    assert (found.evicted, sorted(found.bound)) == ({}, ["b-0", "b-1"])


@pytest.mark.parametrize(("capability", "evicted"), [("1", 0), ("2", 1)])
def test_nothing_is_reclaimed_for_a_task_above_the_capability(harness, capability, evicted):
    """Queue b has less than its share before, and more than its capability after the eviction."""
    harness.put(make_queue("a"), make_queue("b", capability={"cpu": capability}))
    harness.put(make_gang("old", 3, min_member=1, queue="a", node="n1"))
    harness.put(make_gang("b", 1, queue="b", node="n1", cpu="500m"), make_queue("c"))
    harness.put(make_gang("new", 1, queue="b"), make_gang("large", 1, queue="c", cpu=9))
    assert len(harness.run().evicted) == evicted


def test_a_whole_gang_is_reclaimed_if_its_queue_keeps_its_share(harness):
    """Without a1, q1 keeps its share. Without a2, it would have less."""
    two_queues(harness).put(make_gang("a1", 2, queue="q1", node="n1"))
    harness.put(make_gang("a2", 2, queue="q1", node="n1"), make_gang("b", 2, queue="q2"))
    assert sorted(harness.run().evicted) == ["a2-0", "a2-1"]


def test_a_queue_with_its_share_of_one_resource_reclaims_nothing(harness):
    """q1 has more than its share of cpu and q2 has its share of it, though not of memory."""
    two_queues(harness).put(make_gang("a", 2, min_member=0, queue="q1", node="n1"))
    harness.put(make_gang("b", 1, min_member=0, queue="q2", cpu=2, node="n1"))
    harness.put(make_node("n1", cpu="3"), make_gang("c", 1, queue="q2"))
    assert harness.run().evicted == {}


def test_system_pods_are_never_reclaimed(harness):
    two_queues(harness)
    for i in range(4):
        harness.put(make_task(f"a-{i}", node="n1", namespace="kube-system"))
    harness.put(make_gang("b", 2, queue="q2"))
    assert harness.run().evicted == {}


def test_the_eviction_of_a_pod_is_reported_by_an_event_of_its_group(harness):
    two_queues(harness).put(make_gang("a", 4, min_member=1, queue="q1", node="n1"))
    harness.put(make_gang("b", 1, queue="q2"))
    assert "PodGroup a Evict: reclaim" in harness.run().events
