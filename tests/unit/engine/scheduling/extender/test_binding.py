"""Extenders that bind: they are called instead of sending a Bind."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import make_node, make_pod


@pytest.fixture
def scene(asking, extender):
    """One node, one pod, and an extender that binds."""

    def make(**more):
        return asking(make_node("a"), make_pod("p"), extenders=(extender("bind", **more),))

    return make


def broken(text):
    condition = ("PodScheduled", "False", "SchedulerError", text)
    return [("event", "p", "FailedScheduling", text), ("patch", "p", {}, condition)]


def test_the_extender_binds_the_pod(scene):
    stage = scene()
    assert stage.step() == []
    assert stage.question() == ("bind", ["a"])
    assert stage.on("a") == ["default/p"]
    stage.put(make_pod("p", node="a"))
    assert stage.say({"Error": ""}) == [
        ("event", "p", "Scheduled", "Successfully assigned default/p to a")
    ]
    assert stage.on("a") == ["default/p"]


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ({"Error": "no"}, 200, "no"),
        (b"", 500, "failed bind with extender at URL http://e/bind, code 500"),
        (b"garbage", 200, "invalid character 'g' looking for beginning of value"),
    ],
)
def test_a_failed_binding_is_reverted_unless_the_extender_is_ignorable(scene, answer, status, text):
    """upstream: schedule_one.go: extendersBinding."""
    stage = scene()
    stage.step()
    assert stage.say(answer, status) == broken(text)
    assert stage.on("a") == []
    ignorant = scene(ignorable=True)
    ignorant.step()
    assert ignorant.say(answer, status) == [("bind", "p", "a")]


def test_a_pod_that_was_bound_despite_the_failure_is_not_retried(scene):
    """The response was lost after the binding (schedule_one.go: handleSchedulingFailure)."""
    stage = scene()
    stage.step()
    stage.put(make_pod("p", node="a"))
    assert stage.say_nothing() == [("event", "p", "FailedScheduling", "timeout")]
    assert stage.place("p") is None
    assert stage.on("a") == ["default/p"]


def test_a_late_response_does_not_affect_a_recreated_pod(scene):
    """The pod was deleted, and another pod of the same name was created."""
    stage = scene()
    stage.step()
    late = stage.calls.pop()
    stage.gone(make_pod("p"))
    stage.put(make_pod("p", uid="other"))
    stage.steps()
    stage.calls = [late]
    stage.say({"Error": ""})
    assert stage.place("p") != "gone"


def test_a_second_response_to_a_call_changes_nothing(scene):
    stage = scene()
    stage.step()
    (call,) = stage.calls
    stage.put(make_pod("p", node="a"))
    assert stage.say({"Error": ""}) != []
    stage.calls = [call]
    assert stage.say({"Error": "no"}) == []
    assert stage.on("a") == ["default/p"]


def test_pods_without_managed_resources_are_bound_by_the_scheduler(scene):
    stage = scene(managed_resources=("example.com/gpu",))
    assert stage.step() == [("bind", "p", "a")]
