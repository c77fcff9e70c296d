"""Extenders that filter: the cycle waits for them, and they may be slow, wrong or liars."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import make_node, make_pod

URL = "http://e/filter"


@pytest.fixture
def scene(asking, extender):
    """Three nodes, one pod, and an extender that filters, by names unless said otherwise."""

    def make(*extenders, pods=(), **more):
        chain = extenders or (extender("filter", node_cache_capable=True, **more),)
        nodes = [make_node(name) for name in "abc"]
        return asking(*nodes, *(pods or (make_pod("p"),)), extenders=chain)

    return make


def left(*names, **why):
    return {"NodeNames": list(names), "FailedNodes": why}


def failed(text):
    """What is said and written about an unschedulable pod."""
    condition = ("PodScheduled", "False", "Unschedulable", text)
    return [("event", "p", "FailedScheduling", text), ("patch", "p", {}, condition)]


def broken(text):
    condition = ("PodScheduled", "False", "SchedulerError", text)
    return [("event", "p", "FailedScheduling", text), ("patch", "p", {}, condition)]


def test_the_cycle_waits_for_the_answer_and_goes_on_with_it(scene):
    stage = scene(pods=(make_pod("p"), make_pod("q")))
    assert stage.turn() == []
    assert stage.question() == ("filter", ["a", "b", "c"])
    assert not stage.is_due(), "no other pod's turn comes while a cycle is suspended"
    assert stage.say(left("b")) == [("bind", "p", "b")]
    assert stage.turn() == []
    assert stage.question() == ("filter", ["a", "b", "c"])


def test_whole_nodes_are_asked_about_and_answered_with(asking, extender):
    stage = asking(make_node("a"), make_node("b"), make_pod("p"), extenders=(extender("filter"),))
    stage.turn()
    assert not stage.asked[0].by_name
    assert stage.say({"nodes": {"items": [{"metadata": {"name": "b"}}]}}) == [("bind", "p", "b")]


def test_each_extender_is_asked_about_what_the_one_before_has_left(scene, extender):
    first = extender("filter", node_cache_capable=True)
    other = extender("prioritize", prefix="http://o")
    stage = scene(first, other, extender("filter", prefix="http://f", node_cache_capable=True))
    stage.turn()
    stage.say(left("a", "c"))
    assert (stage.asked[0].url, stage.question()[1]) == ("http://f/filter", ["a", "c"])
    assert stage.say(left("c")) == [("bind", "p", "c")]


def test_nobody_is_asked_about_nothing(scene, extender):
    both = [extender("filter", prefix=prefix, node_cache_capable=True) for prefix in "12"]
    stage = scene(*both)
    stage.turn()
    stage.say(left(a="no", b="no", c="no"))
    assert stage.asked == []


def test_reasons_count_as_those_of_plugins_do_and_any_event_wakes_the_pod(scene):
    """upstream: schedule_one.go: findNodesThatPassExtenders; a node without a reason has none."""
    stage = scene()
    stage.turn()
    text = (
        "0/3 nodes are available: 2 full of it. no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )
    assert stage.say(left(a="full of it", b="full of it")) == failed(text)
    assert stage.place("p") == "unschedulable"
    stage.all_done()
    stage.put(make_node("a", labels={"x": "y"}))
    assert stage.place("p") == "backoff"


def test_preemption_fails_where_only_the_extender_rejects(scene):
    """The dry run does not ask it, so no victim is needed; an earlier nomination is kept."""
    low = [make_pod(f"on-{node}", node=node) for node in "ab"]
    stage = scene(pods=(*low, make_pod("p", priority=9, nominated="c")))
    stage.turn()
    stage.say(left())
    [(_, _, _, text), (_, _, fields, _)] = stage.say(left(a="no", b="no", c="no"))
    assert text.endswith(
        'preemption: [expected at least one victim pod on node "a", '
        'expected at least one victim pod on node "b"]'
    )
    assert (fields, stage.nominated("p")) == ({}, "c")


def test_preemption_is_not_tried_where_the_extender_says_that_it_cannot_help(scene):
    stage = scene()
    stage.turn()
    answer = left(a="full") | {"FailedAndUnresolvableNodes": {"a": "never", "b": "never"}}
    [(_, _, _, text), _] = stage.say(answer)
    assert text.startswith("0/3 nodes are available: 2 never. ")
    assert "No preemption victims" not in text


def test_pods_that_want_none_of_its_resources_are_none_of_its_business(scene, extender):
    managing = extender("filter", managed_resources=("example.com/gpu",))
    wants = {"example.com/gpu": "1"}
    limits = [{"name": "c", "resources": {"limits": wants}}]
    pods = (make_pod("p"), make_pod("q", spec={"initContainers": limits}))
    stage = scene(managing, pods=pods)
    assert stage.turn()[0][0] == "bind"
    stage.turn()
    assert stage.asked[0].pod.name == "q"


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        pytest.param(b"", 500, f"failed filter with extender at URL {URL}, code 500", id="broken"),
        pytest.param(b"", 404, f"failed filter with extender at URL {URL}, code 404", id="absent"),
        pytest.param({"Error": "out of order"}, 200, "out of order", id="says so"),
        pytest.param(b"", 200, "EOF", id="empty"),
        pytest.param(b"<html>", 200,
                     "invalid character '<' looking for beginning of value", id="garbage"),
        pytest.param(b'{"NodeNames', 200, "unexpected EOF", id="cut off"),
        pytest.param([1], 200, "json: Expected object, got array", id="another form"),
        pytest.param({"NodeNames": "a"}, 200,
                     "json: Expected array | null, got str - at $.NodeNames", id="another type"),
        pytest.param(left("a", "x"), 200,
                     'extender "http://e" claims a filtered node "x" which is not found in the '
                     "input node list", id="invents nodes"),
        pytest.param({"Nodes": {"items": [{"metadata": {"name": "x"}}]}}, 200,
                     'extender "http://e" claims a filtered node "x" which is not found in the '
                     "input node list", id="invents whole nodes"),
    ],
)  # fmt: skip
def test_an_extender_that_fails_fails_the_pod_unless_it_is_ignorable(scene, answer, status, text):
    """upstream: extender.go: Filter, send; the pod waits in error backoff."""
    stage = scene()
    stage.turn()
    assert stage.say(answer, status) == broken(text)
    assert stage.place("p") == "error_backoff"
    ignorant = scene(ignorable=True)
    ignorant.turn()
    assert ignorant.say(answer, status)[0][0] == "bind"


def test_an_extender_that_does_not_answer_fails_the_pod_likewise(scene):
    stage = scene()
    stage.turn()
    assert stage.say_nothing("context deadline exceeded") == broken("context deadline exceeded")


def test_names_that_are_no_nodes_change_nothing(scene):
    """Reasons for unknown nodes do not count."""
    stage = scene()
    stage.turn()
    [(_, _, _, text), _] = stage.say(left(a="no", x="no", y="no"))
    assert text.startswith("0/3 nodes are available: 1 no. ")


def test_saying_nothing_at_all_leaves_no_node(scene):
    stage = scene()
    stage.turn()
    [(_, _, _, text), _] = stage.say({})
    assert text.startswith("0/3 nodes are available: no new claims")


def test_a_nominated_node_is_evaluated_first_and_alone(scene):
    """upstream: schedule_one.go: evaluateNominatedNode."""
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.turn()
    assert stage.question() == ("filter", ["b"])
    assert stage.say(left("b")) == [("bind", "p", "b")]


@pytest.mark.parametrize("answer", [left(b="no"), {"Error": "broken"}])
def test_a_rejected_nominated_node_is_evaluated_with_all_nodes(scene, answer):
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.turn()
    stage.say(answer)
    assert stage.question() == ("filter", ["a", "b", "c"])


def test_a_node_that_goes_while_the_extender_thinks_is_not_chosen(scene):
    stage = scene()
    stage.turn()
    stage.gone(make_node("b"))
    stage.put(make_node("d"))  # takes over its row
    [(_, _, _, text), _] = stage.say(left("b"))
    assert text.startswith("0/3 nodes are available")


def test_a_node_where_preemption_might_help_may_go_meanwhile_too(asking, extender):
    filtering = extender("filter", node_cache_capable=True)
    full = make_pod("there", node="b", requests={"cpu": "4"}, priority=-1)
    stage = asking(make_node("a"), make_node("b"), full, make_pod("p", requests={"cpu": "1"}),
                   extenders=(filtering,))  # fmt: skip
    stage.turn()
    stage.gone(make_node("b"))
    [(_, _, _, text), _] = stage.say(left(a="no"))
    assert text.startswith("0/1 nodes are available: 1 no. ")


def test_a_nominated_node_that_is_deleted_meanwhile_is_not_chosen(scene):
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.turn()
    stage.gone(make_node("b"))
    stage.say(left("b"))
    assert stage.question()[0] == "filter"
    assert stage.say(left("b"))[0][0] == "event"


def test_a_pod_that_goes_while_the_extender_thinks_is_bound_to_nothing(scene):
    stage = scene()
    stage.turn()
    stage.gone(make_pod("p"))
    stage.say(left())
    assert stage.place("p") is None
    assert stage.asked == []


def test_a_pod_that_is_bound_by_somebody_else_meanwhile_keeps_its_node(scene):
    """The cycle decides for another node, which is not written."""
    stage = scene()
    stage.turn()
    stage.put(make_pod("p", node="b"))
    assert stage.say(left("a")) == []
    assert (stage.on("a"), stage.on("b"), stage.place("p")) == ([], ["default/p"], None)


def test_a_pod_that_goes_before_the_extender_fails_leaves_only_an_event(scene):
    """The error of the extender is the whole message, because no node was rejected."""
    stage = scene()
    stage.turn()
    stage.gone(make_pod("p"))
    text = "Post http://e/filter: timeout"
    assert [one for one in stage.say_nothing(text) if one[0] == "event"] == [
        ("event", "p", "FailedScheduling", text)
    ]
    assert stage.place("p") is None


def test_an_answer_to_nobodys_question_changes_nothing(scene):
    stage = scene()
    stage.turn()
    stage.asked.append(stage.asked[0])
    stage.say(left("b"))
    stage.asked = [stage.asked[0]]
    assert stage.say(left("a")) == []
