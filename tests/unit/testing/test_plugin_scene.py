"""PluginScene: plugins in a small cluster, called as in a run."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from fairlead import plugin
from fairlead.engine.scheduling.decision import Placement
from fairlead.testing import PluginScene, make_node, make_pod


class NoSpot:
    """A plugin that rejects nodes labelled spot, and prefers later letters."""

    name = "NoSpot"

    def __init__(self, args):
        self.label = args.get("label", "spot")

    def filter(self, state, pod, node):
        return plugin.unschedulable("spot") if self.label in node.labels else None

    def score(self, state, pod, node):
        return ord(node.name[0]) - ord("a")

    def post_bind(self, pod, node):
        raise RuntimeError("no")


@pytest.fixture
def scene():
    return PluginScene(NoSpot, nodes=[make_node("a"), make_node("b", labels={"spot": ""})])


def test_pods_are_placed_on_nodes_that_the_plugin_permits_and_stay_there(scene) -> None:
    assert scene.schedule(make_pod("p", requests={"cpu": "3"})) == "a"
    assert scene.schedule(make_pod("q", requests={"cpu": "3"})) == ""


def test_evaluate_returns_the_verdicts_of_all_nodes(scene) -> None:
    found = scene.evaluate(make_pod("p"))
    assert found.verdicts["b"].message == "spot"
    assert found.verdicts["a"] is None


def test_the_instances_of_the_plugins_can_be_inspected() -> None:
    scene = PluginScene(NoSpot, args={"NoSpot": {"label": "x"}})
    assert scene.plugins["NoSpot"].label == "x"


def test_decide_does_not_change_the_cluster(scene) -> None:
    for name in "pqr":
        assert isinstance(scene.decide(make_pod(name, requests={"cpu": "3"})), Placement)


def test_plugin_arguments_can_be_set_and_nodes_added_and_removed() -> None:
    nodes = [make_node("a", labels={"x": ""}), make_node("b")]
    scene = PluginScene(NoSpot, nodes=nodes, args={"NoSpot": {"label": "x"}})
    assert scene.schedule(make_pod("p")) == "b"
    scene.remove(nodes[1])
    assert scene.schedule(make_pod("q")) == ""
    scene.add(make_node("a"))
    assert scene.schedule(make_pod("q")) == "a"


def test_errors_of_the_plugin_are_reported_or_raised(scene) -> None:
    scene.profile.framework.post_bind[0].post_bind(scene.info(make_pod("p")), "a")
    assert [record.plugin for record in scene.reports] == ["NoSpot"]

    class Broken(NoSpot):
        def score(self, state, pod, node):
            return None

    broken = PluginScene(Broken, nodes=[make_node("a"), make_node("b")])
    with pytest.raises(RuntimeError, match="plugin 'NoSpot' failed in score: it returned None"):
        broken.schedule(make_pod("p"))


def test_a_class_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="object has no name"):
        PluginScene(object)


def test_a_name_that_is_given_twice_or_built_in_is_refused_as_on_the_command_line() -> None:
    with pytest.raises(ValueError, match="plugin 'NoSpot' is given twice"):
        PluginScene(NoSpot, NoSpot)
    same = type("Mine", (NoSpot,), {"name": "NodeName"})
    with pytest.raises(ValueError, match="Mine has the name NodeName, which is a built-in plugin"):
        PluginScene(same)


def test_methods_that_run_before_or_after_the_choice_of_a_node_are_not_called() -> None:
    class Strict:
        name = "Strict"

        def pre_enqueue(self, pod):
            return plugin.unschedulable("gated")

        def permit(self, state, pod, node):
            return plugin.unschedulable("refused")

    assert PluginScene(Strict, nodes=[make_node("a")]).schedule(make_pod("p")) == "a"


@pytest.mark.parametrize("plugins", [(), (NoSpot,)])
def test_arguments_of_an_absent_plugin_are_refused(plugins):
    """Otherwise, a plugin with a misspelled name would run with its default arguments."""
    with pytest.raises(ValueError, match="args: the scene has no plugin 'NoSpto'"):
        PluginScene(*plugins, args={"NoSpto": {"label": "x"}})


class Packing:
    """A plugin whose scores depend on the pods of the node, and on the labels of the pod."""

    name = "Packing"
    normalization = plugin.Normalization.NONE

    def score(self, state, pod, node):
        return 0 if "alone" in pod.labels else min(50 * len(node.pods), 100)


@pytest.mark.parametrize(
    ("locality", "normalization", "labels", "message"),
    [
        ("NODE", "NONE", {}, r"score \d+, but the plugin now returns score \d+\."),
        ("NODE", "SCALED", {}, r"score \d+, Packing 50, .* returns score \d+, Packing 100"),
        ("ROW", "NONE", {"alone": ""}, r"score \d+, but the plugin now returns score \d+\."),
        ("CLUSTER", "NONE", {"alone": ""}, None),
        ("ROW", "NONE", {}, None),
    ],
)
def test_a_wrong_locality_is_an_error(locality, normalization, labels, message) -> None:
    """The cached results of the first pod do not apply to the second pod."""
    changes = {
        "locality": plugin.Locality[locality],
        "normalization": plugin.Normalization[normalization],
    }
    nodes = [make_node("a"), make_node("b")]
    scene = PluginScene(type("Packing", (Packing,), changes), nodes=nodes)
    scene.add(make_pod("old", node="a"))
    scene.decide(make_pod("p"))
    if not labels:
        scene.add(make_pod("new", node="a"))
    wrong = f"locality of plugin Packing is wrong.* a is {message}"
    with pytest.raises(AssertionError, match=wrong) if message else nullcontext():
        scene.schedule(make_pod("q", labels=labels))
