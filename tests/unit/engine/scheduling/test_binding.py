"""The binding cycle: the commands that are sent, and the effects of their outcomes."""

from __future__ import annotations

import pytest

from fairlead.engine.core.reporter import PodBound, PodPlaced, PodUnschedulable
from fairlead.engine.core.stimulus import CommandFailed, FailureReason
from fairlead.testing.builders import make_node, make_pod

BOUND = ("event", "a", "Scheduled", "Successfully assigned default/a to n1")
A = make_pod("a", requests={"cpu": "3"})
A_ON_N1 = make_pod("a", node="n1", requests={"cpu": "3"})


def failed(name, message):
    """Return the event and the patch after a failed placement."""
    return [
        ("event", name, "FailedScheduling", message),
        ("patch", name, {}, ("PodScheduled", "False", "SchedulerError", message)),
    ]


def test_a_binding_sends_one_bind_and_then_an_event(stage):
    """The event follows the success of the Bind; nothing else is written."""
    scene = stage(make_node("n1"), A)
    assert scene.step() == [("bind", "a", "n1")]
    assert (scene.on("n1"), scene.place("a"), scene.is_due()) == (["default/a"], None, False)
    assert scene.put(A_ON_N1) == []
    assert scene.done() == [BOUND]
    record, bound = scene.records
    assert isinstance(record, PodPlaced)
    assert isinstance(bound, PodBound)
    assert (record.pod.key, record.node, record.via, record.feasible) == (
        ("default/a", "n1", "single", 1)
    )


def test_the_outcome_of_a_bind_may_arrive_before_the_update_of_the_pod(stage):
    """The pod stays assumed until the update shows its node."""
    scene = stage(make_node("n1"), A)
    scene.step()
    assert scene.done() == [BOUND]
    assert scene.on("n1") == ["default/a"]
    assert scene.put(A_ON_N1) == []
    assert scene.on("n1") == ["default/a"]


def test_the_next_cycle_counts_the_assumed_pod(stage):
    """The pod counts before its binding is confirmed."""
    scene = stage(make_node("n1"), A, make_pod("b", requests={"cpu": "3"}))
    assert scene.step() == [("bind", "a", "n1")]
    assert scene.step()[0][1:3] == ("b", "FailedScheduling")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (FailureReason.CONFLICT, 'Operation cannot be fulfilled on pods/binding "a"'),
        (FailureReason.INTERNAL_ERROR, "Internal error occurred: injected"),
        (FailureReason.NOT_FOUND, 'pods "a" not found'),
    ],
)
def test_a_refused_binding_is_reverted_and_the_pod_backs_off(stage, reason, message):
    """The resources are free at once; the pod stays in error backoff despite events."""
    scene = stage(make_node("n1"), A)
    scene.step()
    text = f'running Bind plugin "DefaultBinder": {message}'
    assert scene.refused(reason, message) == failed("a", text)
    assert (scene.on("n1"), scene.place("a"), scene.is_due()) == ([], "error_backoff", False)
    (record,) = scene.records.of(PodUnschedulable)
    assert (record.is_error, record.is_binding, record.plugins) == (True, True, ())
    scene.done("patch")
    assert scene.step(2) == [("bind", "a", "n1")]


def test_resources_freed_by_a_refused_binding_wake_unschedulable_pods(stage):
    """The effect is that of the deletion of an assigned pod."""
    scene = stage(make_node("n1"), A, make_pod("b", requests={"cpu": "3"}))
    scene.step()
    scene.step()
    bind, _ = scene.sent
    scene.sent = [scene.sent[1], bind]
    scene.done("patch")
    assert scene.place("b") == "unschedulable"
    scene.refused()
    assert scene.place("b") == "backoff"
    assert scene.step() == [("bind", "b", "n1")]


def test_a_refused_binding_ends_a_nomination(stage):
    """The pod may be scheduled to another node afterwards."""
    scene = stage(make_node("n1"), make_pod("a", nominated="n1"))
    assert scene.nominated("a") == "n1"
    scene.step()
    assert scene.nominated("a") == ""
    _, patch = scene.refused()
    assert patch[2] == {"nominatedNodeName": None}


def test_a_pod_deleted_before_the_outcome_of_its_bind(stage):
    """The event is recorded anyway, and nothing is queued."""
    scene = stage(make_node("n1"), A)
    scene.step()
    scene.gone(A)
    text = 'running Bind plugin "DefaultBinder": gone'
    assert scene.refused(FailureReason.NOT_FOUND, "gone") == failed("a", text)
    assert (scene.on("n1"), scene.place("a")) == ([], None)
    scene.refused(FailureReason.NOT_FOUND, "gone")
    assert not scene.is_due()


def test_a_failure_of_a_binding_that_has_ended_changes_nothing(stage):
    """The pod keeps its node."""
    scene = stage(make_node("n1"), A)
    scene.step()
    (bind,) = scene.sent
    scene.put(A_ON_N1)
    assert scene.done() == [BOUND]
    assert scene._handle(CommandFailed(bind, FailureReason.CONFLICT, "late")) == []
    assert (scene.on("n1"), scene.place("a")) == (["default/a"], None)


def test_a_deadline_without_work_changes_nothing(stage):
    """No pod is active, or the status of the last pod is still being written."""
    scene = stage(make_node("n1"), make_pod("b", requests={"cpu": "9"}), A)
    scene.step()
    assert scene.scheduler.handle_deadline(scene.now) == []
    scene.done("patch")
    assert scene.step() == [("bind", "a", "n1")]
    assert scene.scheduler.handle_deadline(scene.now) == []


def test_a_pod_recreated_before_the_outcome_of_its_bind(stage):
    """There is no event about the old pod, and the new pod is scheduled."""
    scene = stage(make_node("n1"), A)
    scene.step()
    scene.gone(A)
    scene.put(make_pod("a", uid="other", requests={"cpu": "3"}))
    assert scene.refused(FailureReason.CONFLICT, "uid mismatch") == []
    assert scene.step() == [("bind", "a", "n1")]


def test_concurrent_bindings_of_a_pod_and_its_recreated_pod(stage):
    """Each outcome is assigned to the right pod by uid."""
    scene = stage(make_node("n1"), make_pod("a", requests={"cpu": "1"}))
    scene.step()
    scene.gone(A)
    scene.put(make_pod("a", uid="other", requests={"cpu": "1"}))
    scene.step()
    assert scene.refused(FailureReason.NOT_FOUND, "gone") == []
    assert scene.on("n1") == ["default/a"]
    scene.put(make_pod("a", uid="other", node="n1", requests={"cpu": "1"}))
    assert scene.done() == [BOUND]


def test_a_pod_bound_by_another_client_during_the_bind(stage):
    """As in upstream, an event says that the Bind was refused; the pod is not tried again."""
    scene = stage(make_node("n1"), make_node("n2", cpu="1"), A)
    assert scene.step() == [("bind", "a", "n1")]
    scene.put(make_pod("a", node="n2", requests={"cpu": "3"}))
    text = 'running Bind plugin "DefaultBinder": already bound'
    event = ("event", "a", "FailedScheduling", text)
    assert scene.refused(FailureReason.CONFLICT, "already bound") == [event]
    assert (scene.on("n1"), scene.on("n2"), scene.place("a")) == ([], ["default/a"], None)
    assert not scene.is_due()


def test_a_pod_bound_by_another_client_leaves_the_queue(stage):
    """The scheduler does not try the pod any more."""
    scene = stage(make_node("n1"), A)
    scene.put(A_ON_N1)
    assert not scene.is_due()


def test_a_terminating_pod_is_skipped(stage):
    """Its attempt ends with an event."""
    scene = stage(make_node("n1"), make_pod("a", terminating=True))
    text = "skip schedule deleting pod: default/a"
    assert scene.step() == [("event", "a", "FailedScheduling", text)]
    assert (scene.place("a"), scene.is_due()) == (None, False)


def test_a_pod_of_another_scheduler_is_not_scheduled(stage):
    """As soon as the pod is bound, its requests count."""
    scene = stage(make_node("n1"), make_pod("a", spec={"schedulerName": "other"}))
    assert not scene.is_due()
    scene.put(make_pod("a", node="n1", spec={"schedulerName": "other"}))
    assert scene.on("n1") == ["default/a"]


def test_ties_are_broken_by_the_seed(stage):
    """Equal seeds always give equal choices."""
    nodes = [make_node(f"n{i}") for i in range(8)]

    def chosen(seed):
        return stage(*nodes, make_pod("a"), seed=seed).step()[0][2]

    assert len({chosen(seed) for seed in range(20)}) > 3
    assert all(chosen(seed) == chosen(seed) for seed in range(5))


def test_a_binding_does_not_delay_the_next_cycle(stage):
    """Many bindings may be in progress at once."""
    scene = stage(make_node("n1"), *(make_pod(f"p{i}") for i in range(5)))
    assert [kind for kind, *_ in scene.steps()] == ["bind"] * 5
    assert len(scene.on("n1")) == 5
