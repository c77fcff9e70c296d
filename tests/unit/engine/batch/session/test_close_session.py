"""What a session writes about jobs and pods: phases, conditions and events."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.batch.defect import UPSTREAM
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.state.resource_columns import CPU
from fairlead.testing.batch_builders import make_gang, make_group, make_queue, make_task
from fairlead.testing.builders import make_node


def old_condition(status="True"):
    one = {"type": "Unschedulable", "status": status, "reason": "NotEnoughResources"}
    return {"conditions": [one | {"message": "2/2 tasks in gang unschedulable: no"}]}


def test_a_bound_gang_has_phase_running(harness):
    found = harness.put(make_node("n1"), make_gang("g", 2)).run()
    assert found.patches["PodGroup", "g"].fields == {"phase": "Running"}


def test_a_waiting_gang_has_phase_pending_and_an_unschedulable_condition(harness):
    found = harness.put(make_node("n1"), make_gang("g", 5)).run()
    patch = found.patches["PodGroup", "g"]
    assert patch.fields == {"phase": "Pending"}
    (condition,) = patch.conditions
    assert (condition.type, condition.status) == ("Unschedulable", "True")
    assert condition.reason == "NotEnoughResources"
    assert condition.message == (
        "5/5 tasks in gang unschedulable: 0/1 nodes are available: 1 Insufficient cpu."
    )
    assert (
        "PodGroup g Unschedulable: 5/5 tasks in gang unschedulable: "
        "0/1 nodes are available: 1 Insufficient cpu." in found.events
    )


def waiting_message(found, group):
    (condition,) = found.patches["PodGroup", group].conditions
    return condition.message.partition(": ")[2]


def test_the_condition_may_name_the_queue_as_the_reason(make_harness):
    """If no nodes were examined, the message names none."""
    harness = make_harness("fairlead").put(make_node("n1", memory="4Gi"))
    harness.put(make_queue("a"), make_queue("b"), make_queue("shut", state="Closed"))
    harness.put(make_queue("small", capability={"cpu": 1}), make_gang("little", 1, queue="small"))
    harness.put(make_gang("b", 2, queue="b"), make_gang("a", 2, queue="a", node="n1"))
    harness.put(make_gang("more", 1, queue="a"), make_gang("kept", 1, queue="shut"))
    harness.put(make_gang("large", 1, queue="small", cpu=2))
    found = harness.run()
    assert waiting_message(found, "more") == "queue a already has the share that it deserves"
    assert waiting_message(found, "kept") == "queue shut is closed"
    assert waiting_message(found, "large") == "queue small has reached its limit"


@pytest.mark.parametrize("limited", ["q", "team"])
def test_the_condition_may_name_the_group_for_which_the_limit_of_a_queue_is_reserved(
    make_harness, limited
):
    """The limit is that of the pod's queue, or of the queue above it."""
    limits = {one: {"capability": {"cpu": 8}} if one == limited else {} for one in ("q", "team")}
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"), make_queue("default"))
    harness.put(make_queue("team", **limits["team"]), make_queue("q", parent="team", **limits["q"]))
    harness.put(make_task("old", node="n1", cpu=2), make_gang("g", 2, cpu=4, queue="q"))
    harness.run(0)
    harness.put(make_gang("next", 1, queue="q"))
    waiting = waiting_message(harness.run(600), "next")
    assert waiting == f"the limit of queue {limited} is reserved for group default/g"


def test_pods_of_a_waiting_gang_get_the_event_of_kube_scheduler(harness):
    found = harness.put(make_node("n1"), make_gang("g", 5)).run()
    (condition,) = found.patches["Pod", "g-0"].conditions
    assert (condition.type, condition.status, condition.reason) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert condition.message == text
    assert f"Pod g-0 FailedScheduling: {text}" in found.events


def sources(found):
    return {
        (one.regarding.name, one.reason): one.reporting_controller
        for one in found.commands
        if isinstance(one, RecordEvent)
    }


def test_events_come_from_the_scheduler_of_the_pods(harness):
    """As `kubectl describe` shows the events of kube-batch and Volcano."""
    stray = make_task("stray", "g", scheduler="default-scheduler", node="n1")
    harness.put(make_node("n1"), stray, make_gang("g", 5, scheduler="volcano"))
    found = sources(harness.put(make_group("empty", 1)).run())
    assert found["g", "Unschedulable"] == found["g-0", "FailedScheduling"] == "volcano"
    assert found["empty", "Unschedulable"] == "volcano"


def test_events_about_a_group_without_pods_come_from_the_only_scheduler(make_harness):
    harness = make_harness("fairlead", ownership=Ownership(("own",))).put(make_node("n1"))
    found = sources(harness.put(make_queue("default"), make_group("empty", 1)).run())
    assert found == {("empty", "Unschedulable"): "own"}


def test_kube_batch_repeats_an_event_without_reasons(make_harness):
    harness = make_harness("kube-batch", defects=UPSTREAM).put(
        make_queue("default"), make_node("n1")
    )
    harness.put(make_gang("g", 5))
    first, second = harness.run(), harness.run()
    assert "Pod g-4 FailedScheduling: 0 nodes are available" in first.events
    assert first.events == second.events


def test_the_status_counts_the_members_by_phase(harness):
    harness.put(make_node("n1"), make_group("g", 2), make_task("g-0", "g", node="n1"))
    harness.put(make_task("g-1", "g", node="n1"))
    harness.put(make_task("g-2", "g", status={"phase": "Succeeded"}))
    harness.put(make_task("g-3", "g", status={"phase": "Failed"}))
    assert harness.run().patches["PodGroup", "g"].fields == {
        "phase": "Running",
        "running": 2,
        "succeeded": 1,
        "failed": 1,
    }


@pytest.mark.parametrize(
    ("api", "phases", "expected"),
    [
        ("scheduling.volcano.sh/v1beta1", ("Succeeded", "Succeeded"), "Completed"),
        ("scheduling.volcano.sh/v1beta1", ("Succeeded", "Failed"), "Completed"),
        ("scheduling.volcano.sh/v1beta1", ("Succeeded", "Running"), "Running"),
        ("scheduling.volcano.sh/v1beta1", ("Succeeded",), "Pending"),
        ("scheduling.incubator.k8s.io/v1alpha1", ("Succeeded", "Succeeded"), "Pending"),
    ],
)
def test_a_gang_whose_members_have_ended_is_completed_in_volcano(harness, api, phases, expected):
    """upstream: volcano: pkg/scheduler/framework/session.go: jobStatus."""
    harness.put(make_node("n1"), make_group("g", 2, api=api))
    for number, phase in enumerate(phases):
        pod = make_task(f"g-{number}", "g", node="n1", status={"phase": phase})
        harness.put(pod)
    found = harness.run()
    assert found.patches["PodGroup", "g"].fields["phase"] == expected
    if expected == "Completed":
        assert not [one for one in found.events if one.startswith("PodGroup g")]


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        ("scheduling.volcano.sh/v1beta1", "Completed"),
        ("scheduling.incubator.k8s.io/v1alpha1", "Running"),
    ],
)
def test_a_group_without_a_minimum_is_completed_in_volcano_while_no_member_runs(
    harness, api, expected
):
    """upstream: volcano: pkg/scheduler/framework/session.go: jobStatus."""
    harness.put(make_node("n1", cpu="1"), make_group("g", 0, api=api), make_task("p", "g", cpu=2))
    assert harness.run().patches["PodGroup", "g"].fields["phase"] == expected


def test_a_running_gang_with_too_few_members_has_phase_unknown(harness):
    harness.put(make_node("n1"), make_group("g", 2), make_task("g-0", "g", node="n1"))
    found = harness.run()
    assert found.patches["PodGroup", "g"].fields["phase"] == "Unknown"


def test_an_obsolete_unschedulable_condition_becomes_false(harness):
    harness.put(make_node("n1"), make_group("g", 1, status=old_condition()), make_task("g-0", "g"))
    (condition,) = harness.run().patches["PodGroup", "g"].conditions
    assert (condition.type, condition.status) == ("Unschedulable", "False")


def test_kube_batch_never_resets_an_obsolete_unschedulable_condition(make_harness):
    harness = make_harness("kube-batch", defects=UPSTREAM).put(
        make_queue("default"), make_node("n1")
    )
    harness.put(make_group("g", 1, status=old_condition()), make_task("g-0", "g"))
    assert harness.run().patches["PodGroup", "g"].conditions == ()


def test_an_unchanged_status_is_not_written_again(harness):
    text = "5/5 tasks in gang unschedulable: 0/1 nodes are available: 1 Insufficient cpu."
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": text,
    }
    status = {"phase": "Pending", "conditions": [condition]}
    _group, *pods = make_gang("g", 5)
    harness.put(make_node("n1"), make_group("g", 5, status=status), pods)
    found = harness.run()
    assert ("PodGroup", "g") not in found.patches
    assert not any(event.startswith("PodGroup") for event in found.events)


def test_no_status_is_written_for_groups_without_an_object(harness):
    found = harness.put(make_node("n1"), make_task("p", cpu=9)).run()
    assert [kind for kind, _ in found.patches] == ["Pod"]


@pytest.mark.parametrize("api", ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"])
def test_the_status_write_targets_a_group_by_name_and_uid(api, harness):
    harness.put(make_node("n1"), make_group("g", 1, api=api), make_task("g-0", "g"))
    target = harness.run().patches["PodGroup", "g"].target
    assert (target.namespace, target.uid) == ("default", "uid-group-g")


def test_unchanged_jobs_are_not_reported_again(harness):
    harness.put(make_node("n1"), make_gang("g", 2, node="n1"))
    assert "g" in harness.run().reports
    assert harness.run().reports == {}


# --- upstream's own groups ---------------------------------------------------------------------

UPSTREAM_API = "scheduling.k8s.io/v1alpha2"
GANG_OF_TWO = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def upstream_condition(harness, status=None):
    """The condition written for a group of two in upstream's API."""
    harness.put(make_group("g", 0, api=UPSTREAM_API, status=status, **GANG_OF_TWO))
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    harness.put(make_task("g-0", spec=spec), make_task("g-1", spec=spec))
    patch = harness.run().patches.get(("PodGroup", "g"))
    if patch is None:
        return None
    assert patch.target.kind == "PodGroup.scheduling.k8s.io"
    assert patch.fields == {}
    (condition,) = patch.conditions
    assert condition.type == "PodGroupScheduled"
    return condition


def test_a_scheduled_group_of_upstream_gets_a_true_condition(harness):
    found = upstream_condition(harness.put(make_node("n1")))
    assert (found.status, found.reason) == ("True", "Scheduled")


def test_a_waiting_group_of_upstream_gets_a_false_condition_with_the_reason(harness):
    found = upstream_condition(harness.put(make_node("n1", cpu="1")))
    assert (found.status, found.reason) == ("False", "Unschedulable")
    assert found.message.startswith("2/2 tasks in gang unschedulable: 0/1 nodes are available")


def test_an_equal_condition_of_a_group_of_upstream_is_not_written_again(harness, make_harness):
    first = upstream_condition(harness.put(make_node("n1", cpu="1")))
    said = {"type": first.type, "status": "False", "reason": first.reason}
    known = {"conditions": [{**said, "message": first.message}]}
    assert upstream_condition(make_harness().put(make_node("n1", cpu="1")), known) is None


def test_the_true_condition_of_a_group_of_upstream_stays_true(harness):
    known = {"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}]}
    assert upstream_condition(harness.put(make_node("n1", cpu="1")), known) is None


def test_members_of_an_incomplete_gang_say_how_many_are_missing(harness):
    """For example because a quota refuses a pod of the group."""
    found = harness.put(make_node("n1"), make_group("g", 3), make_task("a", "g")).run()
    text = "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"
    assert f"Pod a FailedScheduling: {text}" in found.events
    assert f"PodGroup g Unschedulable: 1/1 tasks in gang unschedulable: {text}" in found.events


# --- tasks that wait for releasing resources -------------------------------------------------


def test_a_resource_that_suffices_exactly_is_not_lacking(make_harness):
    """The task could use all idle cpu, and waits for memory only."""
    harness = make_harness("fairlead").put(make_node("n1", cpu="4", memory="4Gi"))
    harness.put(make_task("old", cpu=1, memory="3Gi", node="n1", terminating=True))
    found = harness.put(make_gang("g", 1, cpu=3, memory="2Gi")).run()
    text = "0/1 nodes are available, 1 insufficient memory."
    assert waiting_message(found, "g") == text


def test_kube_batch_names_a_resource_that_suffices_exactly(make_harness):
    """It raises each request by the tolerance (resource_info.go: FitDelta)."""
    harness = make_harness("kube-batch").put(make_queue("default"))
    harness.put(make_node("n1", cpu="4", memory="4Gi"))
    harness.put(make_task("old", cpu=1, memory="3Gi", node="n1", terminating=True))
    found = harness.put(make_gang("g", 1, cpu=3, memory="2Gi")).run()
    text = "0/1 nodes are available, 1 insufficient cpu, 1 insufficient memory."
    assert waiting_message(found, "g") == text


def test_resources_that_are_reserved_for_another_job_are_lacking(make_harness):
    harness = make_harness("fairlead").put(make_node("n1", cpu="4"), make_gang("g", 1, cpu=2))
    session, node = harness.session(), harness.cluster.table.find("n1")
    held = np.zeros_like(session.room.idle)
    held[CPU, node.row] = 3_000
    session.room.reserve(held)
    session.note_shortfall(harness.task("g-0"), node)
    assert session.shortfalls == {"default/g": ["cpu"]}
