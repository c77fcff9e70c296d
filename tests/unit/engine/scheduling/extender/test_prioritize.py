"""Extenders that prioritise: their scores count beside the plugins', and their failures do not."""

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


def test_a_score_counts_ten_times_its_weight(scene):
    """The plugin gives a some 96 points and b 46, so 50 tip the scales."""
    for score, chosen in ((4, "a"), (6, "b")):
        stage = scene(1)
        stage.turn()
        assert stage.question() == ("prioritize", ["a", "b"])
        assert stage.say(scores(b=score)) == [("bind", "p", chosen)]
    stage = scene(3)
    stage.turn()
    assert stage.say(scores(b=2)) == [("bind", "p", "b")]


def test_all_are_asked_at_once_and_their_scores_add_up(scene):
    stage = scene(1, 1)
    stage.turn()
    assert [call.url for call in stage.asked] == ["http://0/prioritize", "http://1/prioritize"]
    assert stage.say(scores(b=3)) == []
    assert stage.say(scores(b=3, a=0)) == [("bind", "p", "b")]


def test_answers_may_come_in_any_order(scene):
    stage = scene(1, 9)
    stage.turn()
    stage.asked.reverse()
    assert stage.say(scores(a=1)) == []
    assert stage.say(scores(b=10)) == [("bind", "p", "a")]


@pytest.mark.parametrize(
    "answer",
    [b"", b"garbage", {"a": 1}, [{"Host": "b", "Score": 1.5}], [{"Host": "b", "Score": 1 << 70}]],
)
def test_one_that_fails_gives_no_scores(scene, answer):
    """upstream: schedule_one.go: prioritizeNodes."""
    stage = scene(100)
    stage.turn()
    assert stage.say(answer) == [("bind", "p", "a")]


def test_one_that_does_not_answer_gives_none_either(scene):
    stage = scene(100)
    stage.turn()
    assert stage.say_nothing() == [("bind", "p", "a")]


@pytest.mark.parametrize("answer", [scores(x=10), [], None, [{"host": "x"}, None]])
def test_scores_of_no_node_change_nothing(scene, answer):
    stage = scene(100)
    stage.turn()
    assert stage.say(answer) == [("bind", "p", "a")]


def test_scores_beyond_all_bounds_wrap_around_as_upstreams_do(scene):
    stage = scene(1)
    stage.turn()
    assert stage.say(scores(b=INT64_MAX // 5)) == [("bind", "p", "a")]


def test_where_one_node_is_left_nobody_is_asked(asking, extender):
    stage = asking(make_node("a"), make_pod("p"), extenders=(extender("prioritize"),))
    assert stage.turn() == [("bind", "p", "a")]


def test_nodes_that_go_meanwhile_are_not_chosen(scene):
    stage = scene(1)
    stage.turn()
    stage.gone(make_node("b"))
    assert stage.say(scores(b=10)) == [("bind", "p", "a")]
    stage = scene(1)
    stage.turn()
    stage.gone(make_node("a"), make_node("b"))
    [(_, _, _, text), _] = stage.say(scores(b=10))
    assert text == "all feasible nodes were deleted before the extenders answered"
