"""Extenders that bind: they are asked where else a Bind is sent."""

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


def test_the_extender_is_asked_to_bind_and_has_done_so(scene):
    stage = scene()
    assert stage.turn() == []
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
def test_where_it_fails_the_pod_is_forgotten_unless_it_is_ignorable(scene, answer, status, text):
    """upstream: schedule_one.go: extendersBinding."""
    stage = scene()
    stage.turn()
    assert stage.say(answer, status) == broken(text)
    assert stage.on("a") == []
    ignorant = scene(ignorable=True)
    ignorant.turn()
    assert ignorant.say(answer, status) == [("bind", "p", "a")]


def test_a_pod_that_was_bound_after_all_is_not_tried_again(scene):
    """The extender did it, and its answer was lost (schedule_one.go: handleSchedulingFailure)."""
    stage = scene()
    stage.turn()
    stage.put(make_pod("p", node="a"))
    assert stage.say_nothing() == []
    assert stage.place("p") is None
    assert stage.on("a") == ["default/p"]


def test_a_pod_of_the_same_name_is_another_pod(scene):
    """A late answer about one that is gone says nothing about its successor."""
    stage = scene()
    stage.turn()
    late = stage.asked.pop()
    stage.gone(make_pod("p"))
    stage.put(make_pod("p", uid="other"))
    stage.turns()
    stage.asked = [late]
    stage.say({"Error": ""})
    assert stage.place("p") != "gone"


def test_a_second_answer_to_one_question_changes_nothing(scene):
    stage = scene()
    stage.turn()
    (call,) = stage.asked
    stage.put(make_pod("p", node="a"))
    assert stage.say({"Error": ""}) != []
    stage.asked = [call]
    assert stage.say({"Error": "no"}) == []
    assert stage.on("a") == ["default/p"]


def test_pods_that_want_none_of_its_resources_are_bound_as_ever(scene):
    stage = scene(managed_resources=("example.com/gpu",))
    assert stage.turn() == [("bind", "p", "a")]
