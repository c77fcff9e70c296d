"""Extenders that filter: the cycle waits for them, and they may be slow, fail or be wrong."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import make_node, make_pod

URL = "http://e/filter"


@pytest.fixture
def scene(asking, extender):
    """Three nodes, one pod, and an extender that filters, with node names by default."""

    def make(*extenders, pods=(), **more):
        chain = extenders or (extender("filter", node_cache_capable=True, **more),)
        nodes = [make_node(name) for name in "abc"]
        return asking(*nodes, *(pods or (make_pod("p"),)), extenders=chain)

    return make


def left(*names, **why):
    return {"NodeNames": list(names), "FailedNodes": why}


def failed(text):
    """Return the event and the patch of an unschedulable pod."""
    condition = ("PodScheduled", "False", "Unschedulable", text)
    return [("event", "p", "FailedScheduling", text), ("patch", "p", {}, condition)]


def broken(text):
    condition = ("PodScheduled", "False", "SchedulerError", text)
    return [("event", "p", "FailedScheduling", text), ("patch", "p", {}, condition)]


def test_the_cycle_waits_for_the_response_and_continues(scene):
    stage = scene(pods=(make_pod("p"), make_pod("q")))
    assert stage.step() == []
    assert stage.question() == ("filter", ["a", "b", "c"])
    assert not stage.is_due(), "no other pod's turn comes while a cycle is suspended"
    assert stage.say(left("b")) == [("bind", "p", "b")]
    assert stage.step() == []
    assert stage.question() == ("filter", ["a", "b", "c"])


def test_requests_and_responses_may_contain_whole_nodes(asking, extender):
    stage = asking(make_node("a"), make_node("b"), make_pod("p"), extenders=(extender("filter"),))
    stage.step()
    assert not stage.calls[0].by_name
    assert stage.say({"nodes": {"items": [{"metadata": {"name": "b"}}]}}) == [("bind", "p", "b")]


def test_each_extender_gets_the_nodes_that_the_previous_one_accepted(scene, extender):
    first = extender("filter", node_cache_capable=True)
    other = extender("prioritize", prefix="http://o")
    stage = scene(first, other, extender("filter", prefix="http://f", node_cache_capable=True))
    stage.step()
    stage.say(left("a", "c"))
    assert (stage.calls[0].url, stage.question()[1]) == ("http://f/filter", ["a", "c"])
    assert stage.say(left("c")) == [("bind", "p", "c")]


def test_no_extender_is_called_without_nodes(scene, extender):
    both = [extender("filter", prefix=prefix, node_cache_capable=True) for prefix in "12"]
    stage = scene(*both)
    stage.step()
    stage.say(left(a="no", b="no", c="no"))
    assert stage.calls == []


def test_reasons_are_reported_and_any_event_wakes_the_pod(scene):
    """upstream: schedule_one.go: findNodesThatPassExtenders; a node without a reason has none."""
    stage = scene()
    stage.step()
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


def test_preemption_fails_on_nodes_that_only_the_extender_rejects(scene):
    """The dry run does not call it, so no victim is needed; an earlier nomination is kept."""
    low = [make_pod(f"on-{node}", node=node) for node in "ab"]
    stage = scene(pods=(*low, make_pod("p", priority=9, nominated="c")))
    stage.step()
    stage.say(left())
    [(_, _, _, text), (_, _, fields, _)] = stage.say(left(a="no", b="no", c="no"))
    assert text.endswith(
        'preemption: [expected at least one victim pod on node "a", '
        'expected at least one victim pod on node "b"]'
    )
    assert (fields, stage.nominated("p")) == ({}, "c")


def test_preemption_skips_nodes_that_the_extender_calls_unresolvable(scene):
    stage = scene()
    stage.step()
    answer = left(a="full") | {"FailedAndUnresolvableNodes": {"a": "never", "b": "never"}}
    [(_, _, _, text), _] = stage.say(answer)
    assert text.startswith("0/3 nodes are available: 2 never. ")
    assert "No preemption victims" not in text


def test_the_extender_is_not_called_for_pods_without_managed_resources(scene, extender):
    managing = extender("filter", managed_resources=("example.com/gpu",))
    wants = {"example.com/gpu": "1"}
    limits = [{"name": "c", "resources": {"limits": wants}}]
    pods = (make_pod("p"), make_pod("q", spec={"initContainers": limits}))
    stage = scene(managing, pods=pods)
    assert stage.step()[0][0] == "bind"
    stage.step()
    assert stage.calls[0].pod.name == "q"


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
def test_a_failed_extender_fails_the_cycle_unless_it_is_ignorable(scene, answer, status, text):
    """upstream: extender.go: Filter, send; the pod waits in error backoff."""
    stage = scene()
    stage.step()
    assert stage.say(answer, status) == broken(text)
    assert stage.place("p") == "error_backoff"
    ignorant = scene(ignorable=True)
    ignorant.step()
    assert ignorant.say(answer, status)[0][0] == "bind"


def test_an_extender_timeout_fails_the_cycle_unless_it_is_ignorable(scene):
    stage = scene()
    stage.step()
    assert stage.say_nothing("context deadline exceeded") == broken("context deadline exceeded")


def test_names_of_unknown_nodes_are_ignored(scene):
    """Reasons for unknown nodes are ignored, too."""
    stage = scene()
    stage.step()
    [(_, _, _, text), _] = stage.say(left(a="no", x="no", y="no"))
    assert text.startswith("0/3 nodes are available: 1 no. ")


def test_an_empty_response_leaves_no_node(scene):
    stage = scene()
    stage.step()
    [(_, _, _, text), _] = stage.say({})
    assert text.startswith("0/3 nodes are available: no new claims")


def test_a_nominated_node_is_evaluated_first_and_alone(scene):
    """upstream: schedule_one.go: evaluateNominatedNode."""
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.step()
    assert stage.question() == ("filter", ["b"])
    assert stage.say(left("b")) == [("bind", "p", "b")]


@pytest.mark.parametrize("answer", [left(b="no"), {"Error": "broken"}])
def test_a_rejected_nominated_node_is_evaluated_with_all_nodes(scene, answer):
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.step()
    stage.say(answer)
    assert stage.question() == ("filter", ["a", "b", "c"])


def test_a_node_deleted_during_the_call_is_not_chosen(scene):
    stage = scene()
    stage.step()
    stage.gone(make_node("b"))
    stage.put(make_node("d"))  # gets the row of the deleted node
    [(_, _, _, text), _] = stage.say(left("b"))
    assert text.startswith("0/3 nodes are available")


def test_a_candidate_for_preemption_may_be_deleted_during_the_call(asking, extender):
    filtering = extender("filter", node_cache_capable=True)
    full = make_pod("there", node="b", requests={"cpu": "4"}, priority=-1)
    stage = asking(make_node("a"), make_node("b"), full, make_pod("p", requests={"cpu": "1"}),
                   extenders=(filtering,))  # fmt: skip
    stage.step()
    stage.gone(make_node("b"))
    [(_, _, _, text), _] = stage.say(left(a="no"))
    assert text.startswith("0/1 nodes are available: 1 no. ")


def test_a_nominated_node_deleted_during_the_call_is_not_chosen(scene):
    stage = scene(pods=(make_pod("p", nominated="b"),))
    stage.step()
    stage.gone(make_node("b"))
    stage.say(left("b"))
    assert stage.question()[0] == "filter"
    assert stage.say(left("b"))[0][0] == "event"


def test_a_pod_deleted_during_the_call_is_not_bound(scene):
    stage = scene()
    stage.step()
    stage.gone(make_pod("p"))
    stage.say(left())
    assert stage.place("p") is None
    assert stage.calls == []


def test_a_pod_bound_by_another_client_during_the_call_keeps_its_node(scene):
    """The cycle chooses another node, and no Bind is sent."""
    stage = scene()
    stage.step()
    stage.put(make_pod("p", node="b"))
    assert stage.say(left("a")) == []
    assert (stage.on("a"), stage.on("b"), stage.place("p")) == ([], ["default/p"], None)


def test_only_an_event_is_written_for_a_pod_deleted_before_the_failure(scene):
    """The error of the extender is the whole message, because no node was rejected."""
    stage = scene()
    stage.step()
    stage.gone(make_pod("p"))
    text = "Post http://e/filter: timeout"
    assert [one for one in stage.say_nothing(text) if one[0] == "event"] == [
        ("event", "p", "FailedScheduling", text)
    ]
    assert stage.place("p") is None


def test_a_response_without_a_call_changes_nothing(scene):
    stage = scene()
    stage.step()
    stage.calls.append(stage.calls[0])
    stage.say(left("b"))
    stage.calls = [stage.calls[0]]
    assert stage.say(left("a")) == []
