"""The table of jobs, tasks and queues is correct for every order of changes."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.api.objects import OwnerReference
from fairlead.engine.batch.info.job import add_amounts
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.core.stimulus import ObjectDeleted, ObjectsLoaded
from fairlead.testing.batch_builders import (
    make_gang,
    make_group,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_node


def delete(harness, *objects):
    for one in objects:
        harness.tell(ObjectDeleted(one))


# --- who is a member -------------------------------------------------------------------------


def test_a_pod_without_a_group_is_a_job_of_its_own(harness):
    harness.put(make_task("p"))
    (job,) = harness.jobs.jobs.values()
    assert (job.id, job.min_available, job.queue) == ("uid-p", 1, "default")
    assert job.group.ref is None


def test_a_pod_without_a_group_names_its_queue(harness):
    harness.put(make_task("p", annotations={"scheduling.volcano.sh/queue-name": "research"}))
    (job,) = harness.jobs.jobs.values()
    assert job.queue == "research"


def test_pods_of_one_controller_are_one_job(harness):
    owner = {"uid": "rs", "controller": True, "kind": "ReplicaSet", "name": "rs"}
    references = (msgspec.convert(owner, OwnerReference),)
    harness.put(*(make_task(f"p{i}", meta={"owner_references": references}) for i in range(3)))
    (job,) = harness.jobs.jobs.values()
    assert (job.id, len(job.tasks)) == ("rs", 3)


def test_a_pod_without_a_group_keeps_its_job_when_its_requests_change(harness):
    harness.put(make_node("n1"), make_task("p"), make_task("p", cpu=2))
    assert list(harness.jobs.jobs) == ["uid-p"]
    harness.jobs.validate()
    assert harness.run().bound == {"p": "n1"}


def test_pending_pods_of_other_schedulers_are_no_tasks(harness):
    harness.put(make_task("p", scheduler="default-scheduler"))
    harness.put(make_task("q", "g", scheduler="default-scheduler"))
    assert harness.jobs.tasks == {}


def test_a_placed_member_counts_whichever_scheduler_placed_it(harness):
    harness.put(make_node("n1"), make_task("p", "g", scheduler="default-scheduler", node="n1"))
    assert harness.task("p").status is TaskStatus.RUNNING


def test_finished_pods_remain_members_without_allocated_resources(harness):
    harness.put(make_node("n1"), make_gang("g", 2, node="n1"))
    harness.put(make_task("g-0", "g", node="n1", status={"phase": "Succeeded"}))
    job = harness.job("g")
    assert harness.task("g-0").status is TaskStatus.SUCCEEDED
    assert (job.ready_count, job.allocated_count, job.held[0]) == (2, 1, 1000)
    harness.jobs.validate()


def test_a_pod_first_seen_as_finished_is_a_member(harness):
    harness.put(make_task("p", "g", status={"phase": "Failed"}))
    assert harness.job("g").by_status[TaskStatus.FAILED].keys() == {"uid-p"}


def test_running_pods_with_larger_init_containers_are_odd(kube_batch):
    """kube-batch counts only the containers of such pods."""
    harness = kube_batch
    init = {"name": "i", "resources": {"requests": {"cpu": "3"}}}
    start = {"spec": {"initContainers": [init]}}
    harness.put(make_node("n1"), make_task("waits", **start), make_task("plain", node="n1"))
    assert harness.jobs.pods_with_surplus == {}
    harness.put(make_task("runs", node="n1", **start))
    assert harness.jobs.pods_with_surplus.keys() == {"uid-runs"}


def test_gated_pods_are_members_and_are_not_scheduled(harness):
    harness.put(make_node("n1"), make_group("g", 1))
    harness.put(make_task("p", "g", spec={"schedulingGates": [{"name": "wait"}]}))
    assert harness.task("p").status is TaskStatus.GATED
    assert harness.run().bound == {}
    harness.put(make_task("p", "g"))
    assert harness.run().bound == {"p": "n1"}


def test_a_pod_may_change_its_group(harness):
    harness.put(make_task("p", "a"), make_task("p", "b"))
    assert [j.id for j in harness.jobs.jobs.values() if j.tasks] == ["default/b"]
    harness.jobs.validate()


def test_sums_grow_to_the_number_of_resource_columns():
    total = [5, 5]
    add_amounts(total, ((0, 1), (2, 1)), 1)
    assert total == [6, 5, 1]


# --- jobs come and go ------------------------------------------------------------------------


def test_a_job_is_not_scheduled_before_its_group_exists(harness):
    group, *pods = make_gang("g", 2)
    harness.put(make_node("n1"), pods)
    assert harness.run().bound == {}
    assert len(harness.put(group).run().bound) == 2


def test_the_pods_of_a_deleted_group_remain_a_job(harness):
    group, *pods = make_gang("g", 2)
    harness.put(group, pods)
    delete(harness, group)
    assert harness.job("g").group is None
    delete(harness, *pods)
    assert harness.jobs.jobs == {}


def test_no_job_remains_after_pods_and_group_are_deleted(harness):
    group, *pods = make_gang("g", 2)
    harness.put(group, pods)
    delete(harness, *pods, group)
    assert harness.jobs.jobs == {}


def test_deletions_of_unknown_objects_change_nothing(harness):
    """A node, a group that never had pods, and a group that is deleted twice."""
    harness.put(make_node("n1"), make_gang("g", 1))
    delete(harness, make_node("n1"), make_group("other", 1), make_group("other", 1))
    assert list(harness.jobs.jobs) == ["default/g"]


def test_a_recreated_pod_replaces_the_pod_of_the_same_name(harness):
    """The earlier pod, which has another uid, is no longer a member."""
    harness.put(make_group("g", 1), make_task("p", "g"), make_task("p", "g", meta={"uid": "other"}))
    assert list(harness.job("g").tasks) == ["other"]
    harness.jobs.validate()


def test_a_finished_pod_of_another_scheduler_is_no_member(harness):
    harness.put(make_task("p", scheduler="default-scheduler", status={"phase": "Failed"}))
    assert harness.jobs.tasks == {}


def test_a_refused_status_of_an_earlier_group_is_not_written_again(harness):
    """The group of that name was recreated, so its uid differs."""
    harness.put(make_group("g", 1))
    ref = harness.job("g").group.ref
    harness.jobs.touched.clear()
    assert not harness.jobs.status_write_failed(msgspec.structs.replace(ref, uid="earlier"))
    assert harness.jobs.touched == {}
    assert harness.jobs.status_write_failed(ref)
    assert list(harness.jobs.touched) == ["default/g"]


def test_a_job_without_a_group_has_no_minimum_and_no_priority(harness):
    harness.put(make_priority_class("other", 3, default=True), make_task("p", "g"))
    job = harness.job("g")
    assert (job.min_available, job.is_ready, job.priority) == (0, True, 0)


def test_a_group_without_pods_remains_a_job(harness):
    group, pod = make_gang("g", 1)
    harness.put(group, pod)
    delete(harness, pod)
    assert harness.job("g").tasks == {}


def test_a_group_may_change_its_minimum_and_queue(harness):
    harness.put(make_queue("a"), make_queue("b"), make_group("g", 2, "a"), make_group("g", 3, "b"))
    assert (harness.job("g").min_available, harness.job("g").queue) == (3, "b")


def test_a_job_is_scheduled_only_while_its_queue_exists(harness):
    harness.put(make_node("n1"), make_gang("g", 1, queue="a"))
    assert harness.run().bound == {}
    harness.put(make_queue("a"))
    delete(harness, make_queue("a"))
    assert harness.run().bound == {}
    assert harness.put(make_queue("a")).run().bound == {"g-0": "n1"}


def test_all_objects_may_be_loaded_at_once(harness):
    harness.tell(ObjectsLoaded([*make_gang("g", 2), make_queue("default"), make_node("n1")]))
    assert len(harness.run().bound) == 2


# --- priorities ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "priority"),
    [
        ((), 0),
        ((make_priority_class("high", 7),), 7),
        ((make_priority_class("other", 3, default=True),), 3),
        ((make_priority_class("high", 7), make_priority_class("other", 3, default=True)), 7),
    ],
)
def test_the_priority_class_sets_the_priority_of_a_job(classes, priority, harness):
    harness.put(make_group("g", 1, priorityClassName="high"), *classes)
    assert harness.job("g").priority == priority
    delete(harness, *classes)
    assert harness.job("g").priority == 0


@pytest.mark.parametrize("group_first", [True, False])
def test_a_group_of_coscheduling_has_the_highest_priority_of_its_pods(harness, group_first):
    """Its PodGroup names no class, and the default class says nothing about its pods."""
    group = make_group("g", 1, api="scheduling.x-k8s.io/v1alpha1")
    pods = [make_task("low", "g", priority=-9), make_task("less", "g", priority=-5)]
    harness.put(make_priority_class("other", 3, default=True))
    harness.put(*([group, *pods] if group_first else [*pods, group]))
    assert harness.job("g").priority == -5
    high = make_task("high", "g", priority=7)
    harness.put(high)
    assert harness.job("g").priority == 7
    delete(harness, high)
    assert harness.job("g").priority == -5


def test_a_group_of_upstream_sets_its_own_priority(harness):
    harness.put(make_group("g", 1, api="scheduling.k8s.io/v1alpha2", priority=5))
    assert harness.job("g").priority == 5


# --- decisions and what overtakes them ---------------------------------------------------------


@pytest.fixture
def decided(harness):
    """The Bind of `p` was sent, and its outcome is not known yet."""
    harness.put(make_node("n1"), make_group("g", 1), make_task("p", "g"))
    assert harness.run().bound == {"p": "n1"}
    return harness


def test_a_pod_is_assumed_on_its_node_after_the_bind_was_sent(decided):
    assert decided.task("p").status is TaskStatus.BINDING
    assert "uid-p" in decided.cluster.table.find("n1").pods
    assert decided.run().bound == {}


def test_an_update_without_node_name_keeps_the_assumed_bind(decided):
    decided.put(make_task("p", "g", labels={"changed": "yes"}))
    task = decided.task("p")
    assert (task.status, task.node) == (TaskStatus.BINDING, "n1")
    assert task.info.pod.metadata.labels == {"changed": "yes"}


def test_an_update_with_other_requests_keeps_the_assumed_bind(decided):
    decided.put(make_task("p", "g", cpu=2))
    task = decided.task("p")
    assert (task.status, task.node) == (TaskStatus.BINDING, "n1")
    decided.jobs.validate()


def test_an_update_with_the_node_name_confirms_the_bind(decided):
    decided.put(make_task("p", "g", node="n1", status={"phase": "Pending"}))
    assert decided.task("p").status is TaskStatus.BOUND
    decided.put(make_task("p", "g", node="n1"))
    assert decided.task("p").status is TaskStatus.RUNNING
    decided.cluster.table.validate()


def test_a_refused_bind_is_reverted(decided):
    assert decided.jobs.bind_failed("uid-p")
    assert decided.task("p").status is TaskStatus.PENDING
    assert decided.cluster.table.find("n1").pods == {}
    assert decided.run().bound == {"p": "n1"}


def test_a_failed_bind_of_an_unknown_or_bound_pod_changes_nothing(decided):
    assert decided.jobs.bind_failed("uid-other") is False
    decided.put(make_task("p", "g", node="n1"))
    assert not decided.jobs.bind_failed("uid-p")


def test_a_pod_that_is_deleted_during_its_bind_is_removed(decided):
    decided.drop("p")
    assert decided.jobs.tasks == {}
    assert decided.cluster.table.find("n1").pods == {}


@pytest.fixture
def evicting(harness):
    """The deletion of `old-0` was sent."""
    harness.put(make_priority_class("high", 9), make_node("n1", cpu="1"))
    harness.put(make_gang("old", 1, node="n1", min_member=0))
    harness.put(make_gang("new", 1, priority_class="high"))
    assert harness.run().evicted == {"old-0": "preempt"}
    return harness


def test_an_evicted_task_is_releasing(evicting):
    assert evicting.task("old-0").status is TaskStatus.RELEASING
    assert evicting.jobs.releasing_pods.keys() == {"uid-old-0"}
    assert evicting.run().evicted == {}


def test_an_evicted_task_stays_releasing_after_an_update(evicting):
    evicting.put(make_task("old-0", "old", node="n1", labels={"changed": "yes"}))
    assert evicting.task("old-0").status is TaskStatus.RELEASING
    assert evicting.jobs.releasing_pods.keys() == {"uid-old-0"}


def test_the_deletion_of_an_evicted_pod_frees_its_resources(evicting):
    evicting.drop("old-0")
    assert evicting.jobs.releasing_pods == {}
    assert evicting.run().bound == {"new-0": "n1"}


def test_a_refused_eviction_is_reverted(evicting):
    assert evicting.jobs.eviction_failed("uid-old-0")
    assert evicting.task("old-0").status is TaskStatus.RUNNING
    assert evicting.jobs.releasing_pods == {}
    assert not evicting.jobs.eviction_failed("uid-old-0")


def test_a_terminating_task_stays_releasing_after_a_refused_eviction(evicting):
    evicting.put(make_task("old-0", "old", node="n1", terminating=True))
    assert evicting.jobs.eviction_failed("uid-old-0")
    assert evicting.task("old-0").status is TaskStatus.RELEASING
    assert evicting.jobs.releasing_pods.keys() == {"uid-old-0"}


def test_terminating_pods_of_other_schedulers_count_as_releasing(harness):
    harness.put(make_node("n1"))
    harness.put(make_task("p", scheduler="default-scheduler", node="n1", terminating=True))
    assert harness.jobs.releasing_pods.keys() == {"uid-p"}
    harness.drop("p")
    assert harness.jobs.releasing_pods == {}
