"""Plugins that fail: the cycle fails with the name of the plugin, and nothing else fails."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import error, unschedulable
from fairlead.engine.framework.interface import Locality
from fairlead.testing.builders import make_node, make_pod


def broken(point, locality=Locality.CLUSTER):
    """A plugin that raises at one extension point."""

    def fail(*_arguments):
        raise ZeroDivisionError("no such luck")

    methods = {point: fail}
    if point == "unreserve":
        methods["reserve"] = lambda *_: error("cannot")
    if point == "reserve":
        methods["unreserve"] = lambda *_: None
    if point in ("pre_score", "normalize_scores"):
        methods["score"] = lambda *_: 1
    if point == "pre_filter":
        methods["filter"] = lambda *_: None
    return type("Broken", (), {"name": "Broken", "locality": locality, **methods})()


@pytest.mark.parametrize(
    ("point", "locality"),
    [
        ("pre_filter", Locality.NODE),
        ("pre_filter", Locality.CLUSTER),
        ("filter", Locality.NODE),
        ("filter", Locality.ROW),
        ("filter", Locality.CLUSTER),
        ("filter_columns", Locality.ROW),
        ("filter_columns", Locality.CLUSTER),
        ("score", Locality.NODE),
        ("score", Locality.ROW),
        ("score", Locality.CLUSTER),
        ("score_columns", Locality.ROW),
        ("pre_score", Locality.CLUSTER),
        ("normalize_scores", Locality.CLUSTER),
        ("reserve", Locality.CLUSTER),
        ("permit", Locality.CLUSTER),
        ("pre_bind", Locality.CLUSTER),
        ("bind", Locality.CLUSTER),
        ("unreserve", Locality.CLUSTER),
    ],
)
def test_a_failed_plugin_fails_the_cycle_and_is_named(staged, point, locality):
    """The scheduler continues, the pod is in error backoff, and no resources are reserved."""
    plugin = broken(point, locality)
    scene = staged(plugin, objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    event, patch = scene.step()
    assert event[2] == "FailedScheduling"
    assert "Broken" in event[3] or point == "unreserve"
    assert patch[3][2] == "SchedulerError"
    assert (scene.place("a"), scene.on("n1"), scene.on("n2")) == ("error_backoff", [], [])


@pytest.mark.parametrize("point", ["post_bind", "is_woken_by"])
def test_a_plugin_that_fails_without_a_status_is_ignored(staged, point):
    """A queueing hint that fails counts as Queue."""
    plugin = broken(point)
    if point == "is_woken_by":
        plugin = type("Broken", (type(plugin),), {"filter": lambda *_: unschedulable("no")})()
    scene = staged(plugin, objects=[make_node("n1"), make_pod("a")])
    scene.step()
    scene.all_done()
    scene.put(make_node("n2"))
    assert scene.place("a") in (None, "backoff")


@pytest.mark.parametrize("locality", [Locality.NODE, Locality.ROW])
def test_a_score_that_fails_for_an_infeasible_node_has_no_effect(staged, locality):
    """Only feasible nodes are scored, so only their scores can fail the cycle."""

    class Picky:
        name = "Picky"

        def score(self, state, pod, node):
            return 100 // (node.allocatable[0] // 1000 - 1)

    Picky.locality = locality
    nodes = [make_node("small", cpu="1"), make_node("n1"), make_node("n2")]
    scene = staged(Picky(), objects=[*nodes, make_pod("a", requests={"cpu": "2"}), make_pod("b")])
    assert scene.step()[0][0] == "bind"
    assert "Picky" in scene.step()[0][3]


@pytest.mark.parametrize("locality", list(Locality))
@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_fails_the_cycle(staged, score, locality):
    """It would dominate all other scores."""

    class Loud:
        name = "Loud"

        def score(self, state, pod, node):
            return score

    Loud.locality = locality
    scene = staged(Loud(), objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    text = scene.step()[0][3]
    assert "Loud" in text
    assert str(score) in text
