"""Kubelets: the start, end and removal of pods, and stopped or paused kubelets."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod, PodCondition
from fairlead.engine.core.command import DeleteObject, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.controller import Kubelets

T0 = seconds(1_000)
CONFIG = KubeletConfig(start_delay=seconds(0.647), removal_delay=seconds(0.137))


def node(name="n1", *, stopped=False, annotation="stopped"):
    annotations = {"fairlead.dev/kubelet": annotation} if stopped else {}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return decode_as(
        Node, {"metadata": {"name": name, "annotations": annotations}, "status": status}
    )


def pod(
    name="p",
    *,
    uid="u1",
    on="n1",
    phase="Pending",
    grace=None,
    annotations=None,
    spec=None,
    ready=None,
):
    metadata = {"name": name, "namespace": "ns", "uid": uid, "annotations": annotations or {}}
    if grace is not None:
        metadata |= {
            "deletionTimestamp": f"1970-01-01T00:{16 + (40 + grace) // 60}:{(40 + grace) % 60:02}Z",
            "deletionGracePeriodSeconds": grace,
        }
    body = {"metadata": metadata, "spec": {"nodeName": on, **(spec or {})}}
    status = {"phase": phase} if phase else {}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": ready}]
    return decode_as(Pod, body | {"status": status})


def ref(name="p", uid="u1"):
    return ObjectRef("Pod", "ns", name, uid)


def removal(name="p", uid="u1"):
    return DeleteObject(ref(name, uid), grace_period_s=0, why="terminated")


def kubelets(*objects, config=CONFIG, now=T0):
    machine = Kubelets(config)
    assert pod_commands(machine.handle(ObjectsLoaded(objects), now)) == []
    return machine


def pod_commands(commands):
    """Return the commands that are not about nodes and their leases."""
    return [
        one
        for one in commands
        if isinstance(one, RecordEvent) or one.target.kind not in ("Node", "Lease")
    ]


def changed(machine, one, now):
    return machine.handle(ObjectChanged(one), now)


def acts_after(machine, now):
    """Return (time, action) of all actions from `now` on."""
    acts = []
    while (due := machine.next_deadline()) is not None:
        acts += [(max(due, now), one) for one in machine.handle_deadline(max(due, now))]
    return acts


def started(one):
    return msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, phase="Running"))


def test_a_bound_pod_starts_after_the_delay():
    """One status patch has the phase, the startTime and the four conditions.

    The startTime is the time at which the kubelet saw the pod, in whole seconds.
    """
    machine = kubelets(node())
    assert changed(machine, pod(), T0 + seconds(0.5)) == []
    assert machine.next_deadline() == T0 + seconds(1.147)
    (patch,) = machine.handle_deadline(T0 + seconds(1.147))
    assert patch == PatchStatus(
        ref(), {"phase": "Running", "startTime": "1970-01-01T00:16:40Z"}, patch.conditions
    )
    assert {one.type: one.status for one in patch.conditions} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    changed(machine, pod(), T0 + seconds(1.147))  # another client's patch was stored first
    changed(machine, started(pod()), T0 + seconds(1.147))
    assert machine.next_deadline() is None


def test_an_unbound_pod_does_not_start_before_its_binding():
    machine = kubelets(node())
    changed(machine, pod(on=""), T0)
    assert machine.next_deadline() is None
    changed(machine, pod(), T0 + seconds(9))
    assert machine.next_deadline() == T0 + seconds(9.647)


def test_an_update_does_not_delay_the_start():
    machine = kubelets(node())
    changed(machine, pod(), T0)
    changed(machine, pod(annotations={"a": "b"}), T0 + seconds(0.3))
    assert machine.next_deadline() == T0 + seconds(0.647)


def test_a_pod_on_a_missing_node_starts_after_the_node_is_created():
    machine = kubelets(pod())
    assert machine.handle_deadline(T0 + seconds(0.647)) == []
    assert machine.next_deadline() is None
    changed(machine, node(), T0 + seconds(60))
    ((at, patch),) = acts_after(machine, T0 + seconds(60))
    assert at == T0 + seconds(60.647)
    assert patch.fields["startTime"] == "1970-01-01T00:17:40Z"


def test_a_pod_succeeds_after_its_duration():
    machine = kubelets(node())
    one = pod(annotations={"fairlead.dev/run-duration": "90s"})
    changed(machine, one, T0)
    machine.handle_deadline(T0 + seconds(0.647))
    changed(machine, started(one), T0 + seconds(0.647))
    assert machine.next_deadline() == T0 + seconds(90.647)
    (patch,) = machine.handle_deadline(T0 + seconds(90.647))
    assert patch.fields == {"phase": "Succeeded"}
    conditions = {one.type: (one.status, one.reason) for one in patch.conditions}
    assert conditions["Ready"] == ("False", "PodCompleted")
    assert conditions["ContainersReady"] == ("False", "PodCompleted")
    assert conditions["Initialized"] == ("True", "PodCompleted")


FAILED_AT_DEADLINE = {
    "phase": "Failed",
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


@pytest.mark.parametrize(
    ("spec", "stop", "stops_s"),
    [
        ({}, {}, 30),
        ({"terminationGracePeriodSeconds": 7}, {}, 7),
        ({"terminationGracePeriodSeconds": 0}, {}, 1),
        ({}, {"fairlead.dev/stop-duration": "3s"}, 3),
    ],
)
def test_a_pod_fails_after_it_was_stopped_at_its_active_deadline(spec, stop, stops_s):
    """The event comes at the deadline; the containers get their grace period, at least 1 s."""
    spec = {"activeDeadlineSeconds": 5, **spec}
    machine = kubelets(node(), pod(phase="Running", spec=spec, annotations=stop))
    (at, event), (ended_at, patch) = acts_after(machine, T0)
    assert (at, event.type, event.reason) == (T0 + seconds(5), "Normal", "DeadlineExceeded")
    assert event.note == FAILED_AT_DEADLINE["message"]
    assert (ended_at, patch.fields) == (T0 + seconds(5 + stops_s), FAILED_AT_DEADLINE)


def test_an_active_deadline_also_ends_a_pod_that_has_not_started():
    """It counts from the time at which the kubelet saw the pod. No container needs to stop."""
    config = KubeletConfig(start_delay=seconds(60))
    machine = kubelets(node(), config=config)
    changed(machine, pod(spec={"activeDeadlineSeconds": 5}), T0)
    (at, event), (ended_at, patch) = acts_after(machine, T0)
    assert (at, event.reason) == (T0 + seconds(5), "DeadlineExceeded")
    assert (ended_at, patch.fields) == (T0 + seconds(5), FAILED_AT_DEADLINE)


def test_a_pod_deleted_during_its_stop_is_removed_after_it_stopped():
    machine = kubelets(node(), pod(phase="Running", spec={"activeDeadlineSeconds": 5}))
    machine.handle_deadline(T0 + seconds(5))
    changed(
        machine,
        pod(phase="Running", spec={"activeDeadlineSeconds": 5}, grace=600),
        T0 + seconds(6),
    )
    assert machine.next_deadline() == T0 + seconds(35)
    (patch,) = machine.handle_deadline(T0 + seconds(35))
    assert patch.fields == FAILED_AT_DEADLINE
    changed(
        machine, pod(phase="Failed", spec={"activeDeadlineSeconds": 5}, grace=600), T0 + seconds(35)
    )
    assert machine.handle_deadline(T0 + seconds(35)) == [removal()]


def test_a_terminating_pod_is_removed_after_its_grace_period():
    """The uid is a precondition, and the grace period of the deletion is 0."""
    machine = kubelets(node(), pod(phase="Running"))
    changed(machine, pod(phase="Running", grace=10), T0 + seconds(0.5))
    assert machine.next_deadline() == T0 + seconds(10.637)
    assert machine.handle_deadline(T0 + seconds(10.637)) == [removal()]
    changed(machine, pod(phase="Running", grace=10), T0 + seconds(10.637))
    assert machine.next_deadline() is None


def test_a_terminating_pod_does_not_start():
    """A pod that is already terminating at its start time never runs."""
    machine = kubelets(node(), pod())
    changed(machine, pod(grace=10), T0 + seconds(0.1))
    assert machine.handle_deadline(T0 + seconds(0.647)) == []
    assert machine.handle_deadline(T0 + seconds(10.237)) == [removal()]


def test_a_second_deletion_can_only_shorten_the_grace_period():
    machine = kubelets(node(), pod(phase="Running"))
    changed(machine, pod(phase="Running", grace=30), T0)
    changed(machine, pod(phase="Running", grace=30), T0 + seconds(1))
    changed(machine, pod(phase="Running", grace=5), T0 + seconds(2))
    assert machine.handle_deadline(T0 + seconds(7.137)) == [removal()]
    assert machine.handle_deadline(T0 + seconds(30.137)) == []


def test_a_late_second_deletion_does_not_extend_the_grace_period():
    machine = kubelets(node(), pod(phase="Running"))
    changed(machine, pod(phase="Running", grace=30), T0)
    changed(machine, pod(phase="Running", grace=20), T0 + seconds(25))
    assert machine.handle_deadline(T0 + seconds(30.137)) == [removal()]


def test_loaded_pods_continue_from_their_state():
    """Running pods do not start again; terminating pods end after their grace period."""
    machine = kubelets(
        node(),
        pod("runs", phase="Running"),
        pod("ends", phase="Running", grace=20, uid="u2"),
        pod("done", phase="Succeeded"),
        now=T0 + seconds(5),
    )
    assert machine.next_deadline() == T0 + seconds(20.137)
    assert machine.handle_deadline(T0 + seconds(20.137)) == [removal("ends", "u2")]
    assert machine.next_deadline() is None


def frozen(annotation):
    """Return a machine whose kubelet was silent for 60 s, and the time at which it resumes."""
    ends = {"fairlead.dev/run-duration": "2s"}
    machine = kubelets(
        node(),
        pod("starts", uid="u1"),
        pod("ends", uid="u2", phase="Running", annotations=ends),
        pod("goes", uid="u3", phase="Running", grace=9),
        pod("later", uid="u4", phase="Running", annotations={"fairlead.dev/run-duration": "2m"}),
        pod("once", uid="u5", phase="Running", annotations=ends, spec={"restartPolicy": "Never"}),
    )
    changed(machine, node(stopped=True, annotation=annotation), T0)
    while (due := machine.next_deadline()) is not None and due < T0 + seconds(60):
        assert machine.handle_deadline(due) == []
    back = T0 + seconds(60)
    changed(machine, node(), back)
    return machine, back


def acts_of(machine, now):
    return [
        ((at - now) / seconds(1), one.target.name, getattr(one, "fields", {}).get("phase", "gone"))
        for at, one in acts_after(machine, now)
    ]


def test_a_resumed_kubelet_performs_overdue_actions_in_order():
    """Grace periods begin when the kubelet resumes."""
    machine, back = frozen("paused")
    assert acts_of(machine, back) == [
        (0, "starts", "Running"),
        (0, "ends", "Succeeded"),
        (0, "once", "Succeeded"),
        (9.137, "goes", "gone"),
        (60, "later", "Succeeded"),
    ]


def test_after_an_outage_containers_restart_from_the_beginning():
    """A pod with restartPolicy Never has failed, and a terminating pod has stopped."""
    machine, back = frozen("stopped")
    assert acts_of(machine, back) == [
        (0, "goes", "gone"),
        (0, "once", "Failed"),
        (0.647, "starts", "Running"),
        (2.647, "ends", "Succeeded"),
        (120.647, "later", "Succeeded"),
    ]


SPEC = {
    "restartPolicy": "OnFailure",
    "containers": [{"name": "done"}, {"name": "main"}],
    "initContainers": [{"name": "first"}],
}
DONE = {"terminated": {"exitCode": 0}}
STATUSES = {
    "containerStatuses": [
        {"name": "done", "state": DONE},
        {"name": "main", "restartCount": 2, "state": {"running": {}}},
    ],
    "initContainerStatuses": [{"name": "first", "state": DONE}],
}


NOT_READY = PodCondition(type="Ready", status="False")


def with_statuses(policy):
    """Return a ready pod with three containers, two of which have completed."""
    conditions = [{"type": "Ready", "status": "True"}]
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u1"},
        "spec": {"nodeName": "n1", **SPEC, "restartPolicy": policy},
        "status": {"phase": "Running", "conditions": conditions, **STATUSES},
    }
    return decode_as(Pod, body)


def rows(patch, part):
    """Return {container name: `part` of its status} in `patch`."""
    lists = ("containerStatuses", "initContainerStatuses")
    return {row["name"]: part(row) for key in lists for row in patch.fields.get(key, ())}


def returned(one, *, silent_s=30, annotation="stopped"):
    """Return (commands at the return of the node of `one`, later commands, time of the return)."""
    machine = kubelets(node(), one)
    changed(machine, node(stopped=True, annotation=annotation), T0)
    back = T0 + seconds(silent_s)
    first = pod_commands(changed(machine, node(), back))
    return first, acts_after(machine, back), back


@pytest.mark.parametrize(
    ("policy", "restarts"),
    [
        ("OnFailure", {"done": 0, "main": 3, "first": 1}),
        ("Always", {"done": 1, "main": 3, "first": 1}),
    ],
)
def test_lost_containers_are_restarted_and_counted(policy, restarts):
    """Init containers run again in a new sandbox; a completed main container only with Always."""
    first, ((at, patch),), back = returned(with_statuses(policy))
    assert [ready_of(one) for one in first] == ["False"]
    assert (at, ready_of(patch)) == (back + seconds(0.647), "True")
    assert rows(patch, lambda row: row["restartCount"]) == restarts


def test_lost_containers_of_a_pod_that_never_restarts_have_an_exit_code():
    first, ((at, patch),), back = returned(with_statuses("Never"))
    assert (first, at, patch.fields["phase"]) == ([], back, "Failed")
    codes = rows(patch, lambda row: row["state"]["terminated"].get("exitCode", 0))
    assert codes == {"done": 0, "main": 255, "first": 0}
    assert rows(patch, lambda row: row["restartCount"])["main"] == 2


def test_containers_are_not_restarted_after_a_pause():
    first, later, _ = returned(with_statuses("Always"), annotation="paused")
    assert (first, later) == ([], [])


def test_a_paused_kubelet_has_nothing_to_do_for_a_pod_that_was_marked_not_ready():
    """When the kubelet resumes, the pod becomes ready again."""
    machine = kubelets(node(), with_statuses("Always"))
    changed(machine, node(stopped=True, annotation="paused"), T0)
    unready = replace(with_statuses("Always").status, conditions=(NOT_READY,))
    changed(machine, replace(with_statuses("Always"), status=unready), T0 + seconds(40))
    assert machine.next_deadline() is None
    back = T0 + seconds(60)
    changed(machine, node(), back)
    ((at, patch),) = acts_after(machine, back)
    assert (at, ready_of(patch)) == (back, "True")


def test_a_kubelet_that_stops_before_its_write_is_observed_makes_the_pod_ready_again():
    """The pod becomes ready, is marked not ready again, and becomes ready at the next return."""
    pod = with_statuses("Always")
    unready = replace(pod, status=replace(pod.status, conditions=(NOT_READY,)))
    paused = node(stopped=True, annotation="paused")
    machine = kubelets(node(), pod)
    changed(machine, paused, T0)
    changed(machine, unready, T0 + seconds(40))
    changed(machine, node(), T0 + seconds(60))
    ((_, patch),) = acts_after(machine, T0 + seconds(60))
    assert ready_of(patch) == "True"
    changed(machine, paused, T0 + seconds(61))
    changed(machine, pod, T0 + seconds(61))
    changed(machine, unready, T0 + seconds(101))
    back = T0 + seconds(120)
    changed(machine, node(), back)
    ((at, patch),) = acts_after(machine, back)
    assert (at, ready_of(patch)) == (back, "True")


def test_a_refused_restart_is_reported_again_once():
    machine = kubelets(node(), with_statuses("Always"))
    changed(machine, node(stopped=True), T0)
    changed(machine, node(), T0)
    (patch,) = machine.handle_deadline(T0 + seconds(0.647))
    assert rows(patch, lambda row: row["restartCount"])["main"] == 3
    machine.handle(CommandFailed(patch, FailureReason.CONFLICT, ""), T0 + seconds(0.647))
    ((at, again),) = acts_after(machine, T0 + seconds(0.647))
    assert (at, again.fields) == (T0 + seconds(1.647), patch.fields)


def test_a_pod_deleted_during_an_outage_is_not_created_again():
    """The pod was deleted by force on a stopped node."""
    machine = kubelets(node(stopped=True), pod())
    machine.handle_deadline(T0 + seconds(0.647))
    machine.handle(ObjectDeleted(pod()), T0 + seconds(2))
    changed(machine, node(), T0 + seconds(3))
    assert machine.handle_deadline(T0 + seconds(3)) == []


def test_a_recreated_pod_is_a_new_pod():
    machine = kubelets(node(), pod(phase="Running", grace=10))
    changed(machine, pod(uid="u2"), T0 + seconds(3))
    machine.handle(ObjectDeleted(pod(phase="Running", grace=10)), T0 + seconds(3))
    (patch,) = machine.handle_deadline(T0 + seconds(3.647))
    assert patch.target == ref(uid="u2")
    assert machine.handle_deadline(T0 + seconds(10.137)) == []


@pytest.mark.parametrize(
    ("reason", "again"),
    [
        (FailureReason.INTERNAL_ERROR, T0 + seconds(1.647)),
        (FailureReason.NOT_FOUND, None),
        (FailureReason.CONFLICT, T0 + seconds(1.647)),
    ],
)
def test_a_refused_write_is_repeated_unless_the_pod_was_deleted(reason, again):
    machine = kubelets(node(), pod())
    (patch,) = machine.handle_deadline(T0 + seconds(0.647))
    machine.handle(CommandFailed(patch, reason, "no"), T0 + seconds(0.647))
    assert machine.next_deadline() == again
    if again is not None:
        (repeated,) = machine.handle_deadline(again)
        assert repeated.fields["phase"] == "Running"


def test_a_write_that_is_always_refused_is_repeated_more_and_more_rarely():
    """An admission policy may refuse a deletion for ever; a simulated week has few retries."""
    machine = kubelets(node(), pod(phase="Running", grace=10))
    due, retries = machine.next_deadline(), 0
    first = due
    while due < first + seconds(7 * 24 * 3600):
        (delete,) = machine.handle_deadline(due)
        machine.handle(CommandFailed(delete, FailureReason.FORBIDDEN, "no"), due)
        before, due = due, machine.next_deadline()
        assert due - before == max(seconds(1), (before - first) // 8)
        retries += 1
    assert retries < 150


def test_the_pause_after_a_refusal_is_short_again_once_a_write_was_accepted():
    machine = kubelets(node(), pod())
    due = machine.next_deadline()
    for _ in range(60):
        (patch,) = machine.handle_deadline(due)
        machine.handle(CommandFailed(patch, FailureReason.CONFLICT, "no"), due)
        due = machine.next_deadline()
    machine.handle_deadline(due)
    changed(machine, pod(phase="Running"), due)
    changed(machine, pod(phase="Running", grace=10), due)
    due = machine.next_deadline()
    (delete,) = machine.handle_deadline(due)
    machine.handle(CommandFailed(delete, FailureReason.CONFLICT, "no"), due)
    assert machine.next_deadline() == due + seconds(1)


def test_failed_commands_of_other_components_are_ignored():
    machine = kubelets(node(), pod())
    machine.handle_deadline(T0 + seconds(0.647))
    foreign = DeleteObject(ref(), why="preempted")
    machine.handle(CommandFailed(foreign, FailureReason.INTERNAL_ERROR, "no"), T0)
    assert machine.next_deadline() is None


def test_a_deadline_handles_one_pod():
    """The effects of its commands are visible before the next pod is handled."""
    machine = kubelets(node(), pod("a", uid="ua"), pod("b", uid="ub"))
    due = T0 + seconds(0.647)
    assert [one.target.name for one in machine.handle_deadline(due)] == ["a"]
    assert machine.next_deadline() <= due
    assert [one.target.name for one in machine.handle_deadline(due)] == ["b"]


def test_an_invalid_duration_is_reported_once():
    machine = kubelets(node())
    one = pod(annotations={"fairlead.dev/run-duration": "soon"})
    (event,) = changed(machine, one, T0)
    assert isinstance(event, RecordEvent)
    assert event.regarding == ref()
    assert event.note.startswith("metadata.annotations[fairlead.dev/run-duration]: 'soon'")
    assert changed(machine, one, T0) == []


# --- readiness -----------------------------------------------------------------------------


def ready_of(patch):
    return {one.type: one.status for one in patch.conditions}["Ready"]


@pytest.mark.parametrize(
    ("annotations", "config"),
    [
        ({"fairlead.dev/ready-delay": "20s"}, CONFIG),
        ({}, KubeletConfig(start_delay=seconds(0.647), ready_delay=seconds(20))),
    ],
)
def test_a_pod_may_have_a_readiness_delay(annotations, config):
    machine = kubelets(node(), config=config)
    changed(machine, pod(annotations=annotations), T0)
    (start,) = machine.handle_deadline(T0 + seconds(0.647))
    assert (start.fields["phase"], ready_of(start)) == ("Running", "False")
    assert {one.reason for one in start.conditions} == {"", "ContainersNotReady"}
    changed(machine, pod(annotations=annotations, phase="Running", ready="False"), T0 + seconds(1))
    assert machine.next_deadline() == T0 + seconds(20.647)
    (patch,) = machine.handle_deadline(T0 + seconds(20.647))
    assert (patch.fields, ready_of(patch)) == ({}, "True")


def test_a_pod_marked_not_ready_by_others_is_ready_again_at_once():
    """Its kubelet corrects the condition each time."""
    machine = kubelets(node(), pod(phase="Running", ready="True"))
    for after in (5, 9):
        changed(machine, pod(phase="Running", ready="False"), T0 + seconds(after))
        (patch,) = machine.handle_deadline(T0 + seconds(after))
        assert ready_of(patch) == "True"
        changed(machine, pod(phase="Running", ready="True"), T0 + seconds(after))
        assert machine.next_deadline() is None


def test_a_loaded_pod_is_ready_when_a_client_writes_that_its_stopped_container_runs_again():
    config = KubeletConfig(accepts_pods=True, applies_readiness_gates=True)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}

    def reported(state):
        one = pod(phase="Running", ready="False", spec={"containers": [{"name": "c"}]})
        rows = [{"name": "c", "state": state}]
        conditions = [
            {
                "type": name,
                "status": "False",
                "message": "containers with unready status: [c]",
            }
            for name in ("Ready", "ContainersReady")
        ]
        status = {"phase": "Running", "containerStatuses": rows, "conditions": conditions}
        return decode_as(Pod, msgspec.to_builtins(one) | {"status": status})

    machine = kubelets(node(), reported(waiting), config=config)
    assert machine.handle_deadline(T0) == []
    machine.handle(ObjectChanged(reported({"running": {}})), T0 + seconds(9))
    [command] = pod_commands(machine.handle_deadline(T0 + seconds(9)))
    assert {row.type: row.status for row in command.conditions} == {
        "Ready": "True",
        "ContainersReady": "True",
    }


def test_pods_that_become_ready_at_one_instant_are_reported_together():
    """The removal of another pod at the same instant is reported alone."""
    names = ("a", "b", "c")
    pods = [pod(name, uid=name, phase="Running", ready="True") for name in names]
    machine = kubelets(node(), *pods)
    at = T0 + seconds(5)
    changed(machine, pod("a", uid="a", phase="Running", grace=0), at - CONFIG.removal_delay)
    for name in ("b", "c"):
        changed(machine, pod(name, uid=name, phase="Running", ready="False"), at)
    steps = []
    while machine.next_deadline() is not None:
        steps.append({one.target.name for one in machine.handle_deadline(at)})
    assert sorted(steps, key=len) == [{"a"}, {"b", "c"}]


@pytest.mark.parametrize(("containers", "is_made_ready"), [("False", False), ("True", True)])
def test_a_loaded_pod_that_is_not_ready_stays_so_unless_its_containers_are_ready(
    containers, is_made_ready
):
    """The node controller sets Ready to False, but not ContainersReady."""
    unready = pod(phase="Running", ready="False")
    [ready] = unready.status.conditions
    conditions = (ready, replace(ready, type="ContainersReady", status=containers))
    machine = kubelets(
        node(), replace(unready, status=replace(unready.status, conditions=conditions))
    )
    posted = [one for _, one in acts_after(machine, T0) if one.target.kind == "Pod"]
    assert [one.conditions[0].status for one in posted] == ["True"] * is_made_ready


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_a_loaded_pod_with_a_readiness_delay_becomes_ready_after_it(phase):
    """A running pod counts the delay from its startTime, 12 s ago; a pending pod from its start."""
    one = pod(phase=phase, ready="False", annotations={"fairlead.dev/ready-delay": "20s"})
    if phase == "Running":
        one = replace(one, status=replace(one.status, start_time="1970-01-01T00:16:28Z"))
    machine = kubelets(node(), one)
    if phase == "Pending":
        (start,) = machine.handle_deadline(T0 + seconds(0.647))
        assert ready_of(start) == "False"
        changed(machine, started(one), T0 + seconds(1))
    after = 8 if phase == "Running" else 20.647
    ((at, patch),) = acts_after(machine, T0)
    assert (at, ready_of(patch)) == (T0 + seconds(after), "True")


@pytest.mark.parametrize(("annotation", "delay_s"), [("stopped", 0.647), ("paused", 0)])
def test_pods_become_ready_again_when_their_node_recovers(annotation, delay_s):
    """After an outage they were restarted; after a pause they continue."""
    machine = kubelets(node(), pod(phase="Running", ready="True"))
    changed(machine, node(stopped=True, annotation=annotation), T0)
    changed(machine, pod(phase="Running", ready="False"), T0 + seconds(50))
    while (due := machine.next_deadline()) is not None:
        assert machine.handle_deadline(due) == []
    back = T0 + seconds(90)
    changed(machine, node(), back)
    ((at, patch),) = acts_after(machine, back)
    assert (at, ready_of(patch)) == (back + seconds(delay_s), "True")


@pytest.mark.parametrize(("annotation", "delay_s"), [("stopped", 0), ("paused", 10.137)])
def test_a_recovered_node_handles_deletions_during_its_outage(annotation, delay_s):
    """After a pause, pods get their grace period; pods lost in an outage do not."""
    machine = kubelets(node(), pod(phase="Running"))
    changed(machine, node(stopped=True, annotation=annotation), T0)
    changed(machine, pod(phase="Running", grace=10), T0 + seconds(50))
    while (due := machine.next_deadline()) is not None:
        assert machine.handle_deadline(due) == []
    back = T0 + seconds(90)
    changed(machine, node(), back)
    assert acts_after(machine, back) == [(back + seconds(delay_s), removal())]


@pytest.mark.parametrize(
    ("grace", "phase", "code"),
    [
        pytest.param(30, "Running", 143, id="SIGTERM ends the containers"),
        pytest.param(5, "Running", 137, id="SIGKILL ends the containers after the grace period"),
        pytest.param(0, "Running", 137, id="there is no grace period"),
        pytest.param(30, "Pending", 137, id="the containers have not started"),
    ],
)
def test_the_final_status_of_a_pod_has_exit_codes(grace, phase, code):
    """Containers that had ended before keep their exit codes; a sidecar gets one."""
    body = msgspec.to_builtins(with_statuses("Never"))
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    body["spec"]["initContainers"] = [*SPEC["initContainers"], sidecar]
    body["status"]["phase"] = phase
    deleted = pod(grace=grace, annotations={"fairlead.dev/stop-duration": "10s"})
    body["metadata"] = msgspec.to_builtins(deleted.metadata) | {"finalizers": ["example.com/hold"]}
    machine = kubelets(node(), decode_as(Pod, body))
    (_, patch), (_, removed) = acts_after(machine, T0)
    assert isinstance(removed, DeleteObject)
    assert patch.fields["phase"] == "Failed"
    codes = rows(patch, lambda row: row["state"]["terminated"].get("exitCode", 0))
    assert codes == {"done": 0, "main": code, "first": 0, "proxy": code}


def test_the_containers_of_a_deleted_pod_are_lost_when_its_machine_returns():
    body = msgspec.to_builtins(with_statuses("Never"))
    deleted = pod(grace=30)
    body["metadata"] = msgspec.to_builtins(deleted.metadata) | {"finalizers": ["example.com/hold"]}
    first, ((at, patch), _), back = returned(decode_as(Pod, body))
    assert (first, at, patch.fields["phase"]) == ([], back, "Failed")
    assert rows(patch, lambda row: row["state"]["terminated"].get("exitCode", 0))["main"] == 255
