"""Evaluation: the result that a scheduling cycle would have for a pod, with reasons and errors."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from fairlead.engine.core.status import error, unresolvable, unschedulable
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, FailureReason
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.extender.extender import Extender
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene

NODES = [make_node(name, cpu="2") for name in ("n1", "n2", "n3")]
BIG = {"cpu": "2"}


class Gate:
    name = "Gate"
    events = frozenset({EventKind.NODE_ADD})

    def pre_enqueue(self, pod):
        return unschedulable("not yet")


def answering(**answers):
    """Makes extenders with these answers by verb, as JSON; None is a failure."""
    calls = []

    def ask(call):
        calls.append((call.verb.value, call.nodes))
        answer = answers[call.verb.value]
        if answer is None:
            return CommandFailed(call, FailureReason.INTERNAL_ERROR, "timeout")
        return ExtenderAnswered(call, 200, json.dumps(answer).encode())

    ask.calls = calls
    return ask


def with_extender(scene, *verbs, **more):
    extender = Extender(url_prefix="http://e", **{f"{verb}_verb": verb for verb in verbs}, **more)
    return replace(scene.profile, extenders=(extender,))


def test_a_gated_pod_is_not_evaluated():
    found = PluginScene(Gate, nodes=NODES).evaluate(make_pod("a"))
    assert found.gated.reasons == ("not yet",)
    assert (found.verdicts, found.fit_error) == ({}, "")


def test_without_nodes_the_message_says_so():
    assert PluginScene().evaluate(make_pod("a")).fit_error == "no nodes available to schedule pods"


def test_an_extender_rejects_nodes_and_scores_the_remaining_ones():
    """Scores of 0 to 10 are multiplied by ten and the weight; the name is the address."""
    scene = PluginScene(nodes=NODES)
    ask = answering(
        filter={"NodeNames": ["n1", "n2"], "FailedNodes": {"n3": "too far"}},
        prioritize=[{"Host": "n1", "Score": 1}, {"Host": "n2", "Score": 7}],
    )
    served = with_extender(scene, "filter", "prioritize", weight=2, node_cache_capable=True)
    found = evaluate(served, scene.info(make_pod("a")), ask)
    assert found.verdicts["n3"].reasons == ("too far",)
    assert found.best == ["n2"]
    assert found.scores["http://e/prioritize"] == {"n1": 10, "n2": 70}
    assert found.weights["http://e/prioritize"] == 2
    assert found.totals["n2"] - found.totals["n1"] == (70 - 10) * 2


def test_an_extender_that_fails_ends_the_evaluation():
    scene = PluginScene(nodes=NODES)
    ask = answering(filter=None)
    found = evaluate(with_extender(scene, "filter"), scene.info(make_pod("a")), ask)
    assert found.score_error == "timeout"
    assert not found.scores


@pytest.mark.parametrize(
    ("left", "best"), [({"n2": {"Pods": [{"UID": "uid-on-n2"}]}}, "n2"), ({}, None)]
)
def test_an_extender_removes_candidates_for_preemption(left, best):
    scene = PluginScene(nodes=NODES)
    scene.add(*(make_pod(f"on-{name}", node=name, requests=BIG) for name in ("n1", "n2", "n3")))
    pod = scene.info(make_pod("a", priority=10, requests=BIG))
    ask = answering(preempt={"NodeNameToMetaVictims": left})
    served = with_extender(scene, "preempt", node_cache_capable=True)
    found = evaluate(served, pod, ask).preemption
    assert sorted(found.potential_nodes) == ["n1", "n2", "n3"]
    assert sorted(found.candidates) == ([best] if best else [])


def test_an_extender_that_fails_at_preemption_keeps_all_candidates():
    scene = PluginScene(nodes=NODES)
    scene.add(*(make_pod(f"on-{name}", node=name, requests=BIG) for name in ("n1", "n2", "n3")))
    pod = scene.info(make_pod("a", priority=10, requests=BIG))
    found = evaluate(with_extender(scene, "preempt"), pod, answering(preempt=None)).preemption
    assert sorted(found.candidates) == ["n1", "n2", "n3"]


class Breaks:
    """Raises at the extension point `point`, or returns a score out of range."""

    name = "Breaks"
    point = "filter"

    def filter(self, state, pod, node):
        assert self.point != "filter"

    def pre_score(self, state, pod, nodes):
        return error("no data") if self.point == "pre_score" else None

    def score(self, state, pod, node):
        assert self.point != "score"
        return 101 if self.point == "range" else 1


@pytest.mark.parametrize("point", ["filter", "pre_score", "score", "range"])
def test_a_plugin_that_fails_is_named(point):
    """No node is recommended."""
    scene = PluginScene(type("Breaks", (Breaks,), {"point": point}), nodes=NODES)
    found = scene.evaluate(make_pod("a"))
    assert "Breaks" in found.score_error
    assert (found.best, found.totals) == ([], {})


class Finds:
    """A PostFilter plugin with a given result."""

    name = "Finds"
    answer = PostFilterResult(error("no luck"))

    def post_filter(self, state, pod, diagnosis):
        return self.answer


def test_an_error_of_a_post_filter_is_the_result_of_preemption():
    scene = PluginScene(Finds, nodes=NODES)
    assert scene.evaluate(make_pod("a", requests={"cpu": "4"})).preemption is not None
    first = replace(scene.profile.framework.profile, plugins=(("Finds", 0), *DEFAULT_PLUGINS))
    scene = PluginScene(Finds, nodes=NODES, profile=first)
    found = scene.evaluate(make_pod("a", requests={"cpu": "4"}))
    assert found.preemption.post_filter_error == "no luck"


def test_an_unresolvable_post_filter_result_ends_preemption():
    """No later plugin runs, although it would have found a victim."""

    class Hopeless(Finds):
        name = "Hopeless"
        answer = PostFilterResult(unresolvable("do not even try"))

    big = {"cpu": "2"}
    full = [*NODES[:1], make_pod("v", node="n1", requests=big)]
    pod = make_pod("a", priority=10, requests=big)
    assert PluginScene(nodes=full).make_room(pod).nominated_node == "n1"
    first = replace(Profile(), plugins=(("Hopeless", 0), *DEFAULT_PLUGINS))
    scene = PluginScene(Hopeless, nodes=full, profile=first)
    assert scene.make_room(pod) is None
    assert scene.decide(pod).message.endswith(" do not even try")


def test_without_preemption_only_the_node_statuses_are_reported():
    plugins = tuple(one for one in DEFAULT_PLUGINS if one[0] != "DefaultPreemption")
    scene = PluginScene(nodes=NODES, profile=Profile(plugins=plugins))
    found = scene.evaluate(make_pod("a", requests={"cpu": "4"}))
    assert found.fit_error.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert found.preemption is None


def test_the_plugin_that_rejects_the_nominated_node_is_a_rejecting_plugin():
    """This also holds if another plugin restricts the pod to other nodes."""
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    only = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": only}}}
    scene = PluginScene(
        nodes=[make_node("n1", unschedulable=True), make_node("n2", taints=["k:NoSchedule"])]
    )
    alone, nominated = (
        scene.evaluate(make_pod("a", spec=spec, nominated=node)).unschedulable_plugins
        for node in ("", "n2")
    )
    assert "TaintToleration" not in alone
    assert sorted(nominated) == sorted({*alone, "TaintToleration"})


def test_a_nominated_node_is_preferred_to_better_nodes():
    scene = PluginScene(nodes=[*NODES, make_node("empty", cpu="64")])
    found = scene.evaluate(make_pod("a", requests={"cpu": "1"}, nominated="n2"))
    assert (found.via, found.choices) == ("nominated", ["n2"])
