"""The batch controller runs sessions while there are pending jobs, at most one per period."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.batch.configuration_file import BatchConfigurationError, read_configuration
from fairlead.engine.batch.controller import Batch
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.core.command import Bind, DeleteObject, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import QueueMissing, SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.batch_builders import (
    make_gang,
    make_group,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_budget, make_node


@pytest.fixture
def world(worlds):
    return worlds()


def test_no_session_is_due_without_jobs(world):
    world.put(make_node("n1"), make_queue("q"), make_task("p", scheduler="default-scheduler"))
    assert world.batch.next_deadline() is None


def test_the_first_session_runs_at_once(world):
    world.put(make_node("n1"), make_gang("g", 4)).live_until(0)
    assert len(world.running()) == 4


def test_each_bound_pod_gets_an_event(world):
    """As from kube-batch and Volcano; other schedulers write the events of their own pods."""
    other = make_task("p", "g", scheduler="default-scheduler", node="n1")
    world.put(make_node("n1"), make_gang("g", 2), other).live_until(0)
    world.tell(CommandSucceeded(Bind(ObjectRef("Pod", "default", "p", other.metadata.uid), "n1")))
    events = [one for one in world.log if isinstance(one, RecordEvent) and one.type == "Normal"]
    assert {one.reason for one in events} == {"Scheduled"}
    assert [one.note for one in events] == [
        f"Successfully assigned {one.regarding.key} to n1" for one in events
    ]
    assert [one.regarding.name for one in events] == ["g-0", "g-1"]
    assert {one.reporting_controller for one in events} == {"kube-batch"}


def test_the_last_session_runs_a_period_after_the_binds(world):
    world.put(make_node("n1"), make_gang("g", 4)).live_until(100)
    assert world.sessions == [0.0, 1.0]  # the second says that the gang runs
    assert world.batch.next_deadline() is None


def test_a_waiting_gang_is_not_tried_again_before_a_change(world):
    world.put(make_node("n1"), make_gang("g", 5)).live_until(100)
    assert world.sessions == [0.0]
    world.put(make_node("n2")).live_until(200)
    assert len(world.running()) == 5


def test_frequent_changes_start_at_most_one_session_per_period(world):
    world.put(make_node("n1"), make_gang("g", 20)).live_until(10)
    held = len(world.sessions)
    for i in range(5):
        world.now_s = 10 + i / 10
        world.put(make_node(f"m{i}"))
        world.live_until(10 + i / 10)
    assert world.sessions[held:] == [10.0]
    world.live_until(20)
    assert len(world.running()) == 20


def test_a_session_runs_at_the_starvation_bound_of_a_gang(world):
    world.put(make_node("n1"), make_gang("g", 2, cpu=4)).live_until(700)
    assert [at for at in world.sessions if at > 10] == [600.0]


def test_a_refused_bind_is_tried_again(world):
    world.put(make_node("n1"), make_gang("g", 1))
    (bind,) = [c for c in world.batch.handle_deadline(0) if isinstance(c, Bind)]
    world.batch.handle(CommandFailed(bind, FailureReason.CONFLICT, "no"), seconds(0.1))
    assert world.batch.next_deadline() == seconds(1)
    world.live_until(5)
    assert world.running() == {"g-0": "n1"}


def test_a_refused_eviction_is_tried_again(world):
    world.put(make_priority_class("high", 9), make_node("n1", cpu="1"))
    world.put(make_gang("old", 1, node="n1", min_member=0))
    world.put(make_gang("new", 1, priority_class="high"))
    (gone,) = [c for c in world.batch.handle_deadline(0) if isinstance(c, DeleteObject)]
    world.batch.handle(CommandFailed(gone, FailureReason.FORBIDDEN, "no"), 0)
    world.live_until(5)
    assert world.running() == {"new-0": "n1"}


def test_a_failed_eviction_of_a_deleted_pod_starts_no_session(world):
    world.put(make_priority_class("high", 9), make_node("n1", cpu="1"))
    world.put(make_gang("old", 1, node="n1", min_member=0))
    world.put(make_gang("new", 1, priority_class="high"))
    (gone,) = [c for c in world.batch.handle_deadline(0) if isinstance(c, DeleteObject)]
    world.batch.handle(CommandFailed(gone, FailureReason.NOT_FOUND, "no"), 0)
    assert world.batch.next_deadline() is None


@pytest.mark.parametrize("name", ["g", "g-0"])
def test_a_refused_status_is_written_again(world, name):
    world.put(make_node("n1"), make_gang("g", 5))
    (first,) = statuses(world.batch.handle_deadline(0), name)
    world.batch.handle(CommandFailed(first, FailureReason.TOO_MANY_REQUESTS, "no"), 0)
    assert world.batch.next_deadline() == seconds(1)
    assert statuses(world.batch.handle_deadline(seconds(1)), name) == [first]


def test_a_refused_status_of_a_group_without_pods_is_written_again(world):
    world.put(make_node("n1"), make_group("g", 5))
    (first,) = statuses(world.batch.handle_deadline(0), "g")
    world.batch.handle(CommandFailed(first, FailureReason.TOO_MANY_REQUESTS, "no"), 0)
    assert statuses(world.batch.handle_deadline(seconds(1)), "g") == [first]


@pytest.mark.parametrize("name", ["g", "g-0"])
def test_the_status_of_a_deleted_object_is_not_written_again(world, name):
    world.put(make_node("n1"), make_gang("g", 5))
    (first,) = statuses(world.batch.handle_deadline(0), name)
    world.batch.handle(CommandFailed(first, FailureReason.NOT_FOUND, "no"), 0)
    assert world.batch.next_deadline() > seconds(1)  # the gang waits for ten minutes


def statuses(commands, name):
    return [c for c in commands if isinstance(c, PatchStatus) and c.target.name == name]


def test_a_refused_status_of_a_kubelet_starts_no_session(world):
    world.put(make_node("n1"), make_gang("g", 1)).live_until(10)
    target = ObjectRef("Pod", "default", "g-0", "uid-g-0")
    refused = CommandFailed(PatchStatus(target), FailureReason.CONFLICT, "no")
    world.batch.handle(refused, seconds(10))
    assert world.batch.next_deadline() is None


def test_a_failed_bind_of_an_unknown_pod_starts_no_session(world):
    world.put(make_node("n1"), make_gang("g", 1)).live_until(10)
    bind = Bind(ObjectRef("Pod", "default", "x", "uid-x"), "n1")
    world.batch.handle(CommandFailed(bind, FailureReason.CONFLICT, "no"), seconds(10))
    assert world.batch.next_deadline() is None


def test_a_gang_without_its_finished_members_is_reported(world):
    """Recorded from kube-batch, which runs a session every second: kb-status-004."""
    ended = [make_task(f"g-{i}", "g", node="n1", status={"phase": "Succeeded"}) for i in range(2)]
    world.put(make_node("n1"), make_group("g", 2), ended).live_until(10)
    for pod in ended:
        world.tell(ObjectDeleted(pod))
    world.live_until(20)
    reports = [c for c in world.log if isinstance(c, PatchStatus) and c.target.name == "g"]
    assert [one.reason for one in reports[-1].conditions] == ["NotEnoughTasks"]


def test_a_running_gang_is_reported_once_its_queue_exists(world):
    world.put(make_node("n1"), make_gang("g", 2, node="n1", queue="q")).live_until(10)
    assert not [c for c in world.log if isinstance(c, PatchStatus)]
    world.put(make_queue("q")).live_until(20)
    (report,) = [c for c in world.log if isinstance(c, PatchStatus)]
    assert (report.target.name, report.fields["phase"]) == ("g", "Running")


def test_a_missing_queue_is_reported_once(world):
    world.put(make_node("n1", cpu="8"), make_gang("g", 2, queue="q"), make_gang("h", 2, queue="q"))
    world.live_until(10).put(make_gang("i", 1, queue="q")).live_until(20)
    missing = [one for one in world.reports if isinstance(one, QueueMissing)]
    assert missing == [QueueMissing("q", 2, 0)]
    world.put(make_queue("q")).live_until(30)
    assert len(world.running()) == 5


@pytest.mark.parametrize(("rules", "missing"), [("fairlead", []), ("volcano", ["default"])])
def test_the_default_queue_may_need_an_object(worlds, rules, missing):
    world = worlds(rules).put(make_node("n1"), make_gang("g", 2)).live_until(10)
    assert [one.queue for one in world.reports if isinstance(one, QueueMissing)] == missing


def test_a_preemptor_starts_after_its_victims_have_ended(world):
    world.put(make_priority_class("high", 9), make_node("n1"))
    world.put(make_gang("old", 4, min_member=0)).live_until(5)
    world.put(make_gang("new", 3, priority_class="high")).live_until(10)
    assert sorted(world.running()) == ["new-0", "new-1", "new-2", "old-0"]


def test_a_queue_reclaims_its_share(world):
    world.put(make_node("n1"), make_queue("a"), make_queue("b"))
    world.put(make_gang("a", 4, min_member=1, queue="a")).live_until(5)
    assert len(world.running()) == 4
    world.put(make_gang("b", 2, queue="b")).live_until(20)
    assert sorted(world.running()) == ["a-0", "a-1", "b-0", "b-1"]


def test_only_pods_that_name_the_scheduler_are_bound(worlds):
    world = worlds(ownership=Ownership(("mine",)))
    world.put(make_node("n1"), make_group("g", 1), make_task("p", "g", scheduler="mine"))
    world.put(make_group("h", 1), make_task("q", "h")).live_until(10)
    assert world.running() == {"p": "n1"}


def test_pod_groups_of_upstream_can_be_left_to_the_default_scheduler(worlds):
    """An empty group would otherwise be reported as scheduled."""
    meta = {"name": "g", "namespace": "default", "uid": "g"}
    group = decode(
        {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta}
    )
    for only_own, patches in ((False, 1), (True, 0)):
        world = worlds(ownership=Ownership(own_groups_only=only_own))
        world.put(make_node("n1"), group, make_gang("h", 1)).live_until(10)
        assert sum(c.target.name == "g" for c in world.log if isinstance(c, PatchStatus)) == patches
        assert world.running() == {"h-0": "n1"}


def test_the_schedule_period_can_be_configured(worlds):
    world = worlds(schedule_period_s=5.0).put(make_node("n1"), make_gang("g", 1)).live_until(100)
    assert world.sessions == [0.0, 5.0]


def test_an_unknown_action_is_refused():
    config = read_configuration('actions: "allocate, backfil"')
    with pytest.raises(
        BatchConfigurationError, match="no action 'backfil'; known: allocate, backfill"
    ):
        Batch(config, Cluster(), SilentReporter(), TieBreak(0))


def test_handling_a_change_returns_no_commands(world):
    for one in (make_node("n1"), *make_gang("g", 2)):
        world.cluster.apply(ObjectChanged(one))
        assert world.batch.handle(ObjectChanged(one), 0) == []


def test_a_deadline_without_a_change_runs_no_session(world):
    """The status of the running gang has been written."""
    world.put(make_node("n1"), make_gang("g", 1)).live_until(100)
    assert world.batch.handle_deadline(seconds(200)) == []


def test_a_load_is_followed_by_a_session(world):
    """A load always starts a session, but a change of a disruption budget does not."""
    world.put(make_node("n1"), make_gang("g", 5)).live_until(100)
    budget = make_budget("b", {"app": "web"}, allowed=0)
    assert world.put(budget).live_until(200).sessions == [0.0]
    world.tell(ObjectsLoaded([budget]))
    assert world.live_until(300).sessions == [0.0, 200.0]
