"""Extenders that prioritize: their scores are added to those of plugins; failures are ignored."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.profile import Profile
from fairlead.testing.builders import make_node, make_pod

INT64_MAX = (1 << 63) - 1
# One plugin that scores: the emptier node has the higher score, up to 100.
PROFILE = Profile(
    plugins=(("PrioritySort", 0), ("NodeResourcesFit", 1), ("DefaultBinder", 0)),
)


@pytest.fixture
def scene(asking, extender):
    """Two nodes, of which b is half full; and extenders that prioritise."""

    def make(*weights, names=True):
        chain = tuple(
            extender("prioritize", prefix=f"http://{i}", weight=weight, node_cache_capable=names)
            for i, weight in enumerate(weights)
        )
        half = make_pod("there", node="b", requests={"cpu": "2", "memory": "8Gi"})
        nodes = [make_node("a"), make_node("b")]
        return asking(*nodes, half, make_pod("p"), profiles=(PROFILE,), extenders=chain)

    return make


def scores(**by_node):
    return [{"Host": node, "Score": score} for node, score in by_node.items()]


def test_scores_are_multiplied_by_ten_and_the_weight(scene):
    """The plugin gives node a about 96 points and b 46, so that 50 points decide."""
    for score, chosen in ((4, "a"), (6, "b")):
        stage = scene(1)
        stage.step()
        assert stage.question() == ("prioritize", ["a", "b"])
        assert stage.say(scores(b=score)) == [("bind", "p", chosen)]
    stage = scene(3)
    stage.step()
    assert stage.say(scores(b=2)) == [("bind", "p", "b")]


def test_all_extenders_are_called_at_once_and_their_scores_are_summed(scene):
    stage = scene(1, 1)
    stage.step()
    assert [call.url for call in stage.calls] == ["http://0/prioritize", "http://1/prioritize"]
    assert stage.say(scores(b=3)) == []
    assert stage.say(scores(b=3, a=0)) == [("bind", "p", "b")]


def test_responses_may_arrive_in_any_order(scene):
    stage = scene(1, 9)
    stage.step()
    stage.calls.reverse()
    assert stage.say(scores(a=1)) == []
    assert stage.say(scores(b=10)) == [("bind", "p", "a")]


@pytest.mark.parametrize(
    "answer",
    [b"", b"garbage", {"a": 1}, [{"Host": "b", "Score": 1.5}], [{"Host": "b", "Score": 1 << 70}]],
)
def test_a_failed_extender_gives_no_scores(scene, answer):
    """upstream: schedule_one.go: prioritizeNodes."""
    stage = scene(100)
    stage.step()
    assert stage.say(answer) == [("bind", "p", "a")]


def test_an_extender_that_times_out_gives_no_scores(scene):
    stage = scene(100)
    stage.step()
    assert stage.say_nothing() == [("bind", "p", "a")]


@pytest.mark.parametrize("answer", [scores(x=10), [], None, [{"host": "x"}, None]])
def test_scores_of_unknown_nodes_are_ignored(scene, answer):
    stage = scene(100)
    stage.step()
    assert stage.say(answer) == [("bind", "p", "a")]


def test_scores_overflow_as_in_upstream(scene):
    stage = scene(1)
    stage.step()
    assert stage.say(scores(b=INT64_MAX // 5)) == [("bind", "p", "a")]


def test_no_extender_is_called_for_a_single_node(asking, extender):
    stage = asking(make_node("a"), make_pod("p"), extenders=(extender("prioritize"),))
    assert stage.step() == [("bind", "p", "a")]


def test_nodes_deleted_during_the_calls_are_not_chosen(scene):
    stage = scene(1)
    stage.step()
    stage.gone(make_node("b"))
    assert stage.say(scores(b=10)) == [("bind", "p", "a")]
    stage = scene(1)
    stage.step()
    stage.gone(make_node("a"), make_node("b"))
    [(_, _, _, text), _] = stage.say(scores(b=10))
    assert text == "all feasible nodes were deleted before the extenders answered"
