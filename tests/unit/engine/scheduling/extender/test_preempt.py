"""Extenders that process preemption: the candidates that they keep, and the victims."""

from __future__ import annotations

import pytest

from fairlead.engine.core.reporter import PodPreempting
from fairlead.testing.builders import make_node, make_pod

BIG = {"requests": {"cpu": "4"}}


def victim(node, priority=0, name=None):
    return make_pod(name or f"on-{node}", node=node, priority=priority, requests={"cpu": "2"})


@pytest.fixture
def scene(asking, extender):
    """Two nodes with two pods each, and a pod that needs a whole node; a's victims cost less."""

    def make(*extenders, **more):
        chain = extenders or (extender("preempt", node_cache_capable=True, **more),)
        pods = [
            victim("a", 1), victim("a", 1, "second"), victim("b", 5), victim("b", 200, "boss"),
            make_pod("p", priority=100, requests={"cpu": "2"}),
        ]  # fmt: skip
        return asking(make_node("a"), make_node("b"), *pods, extenders=chain)

    return make


def proposed(**by_node):
    return {
        "NodeNameToMetaVictims": {
            node: {"Pods": [{"UID": f"uid-{name}"} for name in names]}
            for node, names in by_node.items()
        }
    }


def room(stage):
    [found] = stage.records.of(PodPreempting)
    return found.node, [ref.name for ref in found.victims], found.rule


def test_the_extender_removes_candidates(scene):
    stage = scene()
    stage.step()
    assert stage.question() == ("preempt", {"a": ["second"], "b": ["on-b"]})
    assert stage.calls[0].by_name
    stage.say(proposed(b=["on-b"]))
    assert room(stage) == ("b", ["on-b"], "only candidate")
    assert stage.nominated("p") == "b"


def test_the_ordered_rules_choose_among_the_remaining_candidates(scene):
    stage = scene()
    stage.step()
    stage.say(proposed(b=["on-b"], a=["second"]))
    assert room(stage) == ("a", ["second"], "lowest highest victim priority")


def test_the_extender_may_change_victims_and_count_budget_violations(scene):
    stage = scene()
    stage.step()
    answer = proposed(a=["on-a", "second", "second"], b=["on-b"])
    answer["NodeNameToMetaVictims"]["b"]["NumPDBViolations"] = 1
    stage.say(answer)
    assert room(stage) == ("a", ["on-a", "second"], "fewest PDB violations")


def test_each_extender_gets_the_candidates_of_the_previous_one(scene, extender):
    both = [extender("preempt", prefix=prefix) for prefix in ("http://1", "http://2")]
    stage = scene(*both, extender("filter", managed_resources=("a.com/b",)))
    stage.step()
    stage.say(proposed(b=["on-b"]))
    assert (stage.calls[0].url, stage.question()[1]) == ("http://2/preempt", {"b": ["on-b"]})
    assert not stage.calls[0].by_name
    stage.say(proposed(b=["on-b"]))
    assert room(stage)[0] == "b"


def test_without_remaining_candidates_the_pod_is_not_nominated(scene):
    """upstream: preemption.go: Preempt."""
    stage = scene()
    stage.step()
    [(_, _, _, text), _] = stage.say({})
    assert text.endswith("preemption: no candidate node for preemption")
    assert stage.records.of(PodPreempting) == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(proposed(x=["on-a"]), 'nodeinfo not found for node name "x"', id="no node"),
        pytest.param(proposed(a=["on-b"]),
                     "extender: http://e claims to preempt pod (UID: &{uid-on-b}) on node: a, but "
                     "the pod is not found on that node", id="elsewhere"),
        pytest.param(proposed(b=["boss"]),
                     "extender: http://e claims to preempt pod (UID: &{uid-boss}) on node: b, but "
                     "its priority is not lower", id="its better"),
        pytest.param(proposed(a=[]), 'expected at least one victim pod on node "a"', id="nobody"),
        pytest.param(b"", "EOF", id="empty"),
    ],
)  # fmt: skip
def test_a_failed_extender_ends_the_attempt(scene, answer, text):
    stage = scene()
    stage.step()
    [(_, _, _, said), _] = stage.say(answer)
    assert said.endswith(f"preemption: {text}")
    assert stage.records.of(PodPreempting) == []


@pytest.mark.parametrize("answer", [proposed(x=["on-a"]), proposed(b=["boss"]), b"garbage"])
def test_a_failed_ignorable_extender_is_skipped(scene, answer):
    stage = scene(ignorable=True)
    stage.step()
    stage.say(answer)
    assert room(stage)[:2] == ("a", ["second"])


def test_nodes_without_victims_of_an_ignorable_extender_are_skipped(scene):
    stage = scene(ignorable=True)
    stage.step()
    stage.say(proposed(a=[], b=["on-b"]))
    assert room(stage)[0] == "b"


def test_a_victim_deleted_during_the_call_is_an_error(scene):
    stage = scene()
    stage.step()
    stage.gone(victim("b", 5))
    [(_, _, _, said), _] = stage.say(proposed(b=["on-b"]))
    assert "but the pod is not found on that node" in said


def test_no_extender_is_called_if_none_is_interested(scene, extender):
    stage = scene(extender("preempt", managed_resources=("a.com/b",)))
    stage.step()
    assert stage.calls == []
    assert room(stage)[0] == "a"


def test_extenders_without_preempt_verb_or_candidates_are_not_called(scene, extender):
    """The next extender gets the candidates that the first one kept."""
    verbs = {"a": "preempt", "b": "prioritize", "c": "preempt"}
    chain = [extender(verb, node_cache_capable=True, prefix=f"http://{name}")
             for name, verb in verbs.items()]  # fmt: skip
    stage = scene(*chain)
    stage.step()
    stage.say(proposed(b=["on-b"]))
    assert (stage.calls[0].extender, stage.question()[1]) == (2, {"b": ["on-b"]})
    stage.say(proposed(b=["on-b"]))
    assert room(stage)[0] == "b"
    stage = scene(*chain)
    stage.step()
    stage.say(proposed())
    assert stage.calls == []
    assert stage.records.of(PodPreempting) == []
