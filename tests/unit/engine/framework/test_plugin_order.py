"""The plugins of a profile at each extension point, by upstream's merging and expansion rules."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.plugin_order import (
    _PROTOCOLS,
    POINTS,
    UPSTREAM_POINTS,
    PluginOrder,
    takes_part,
)
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import (
    ALL,
    DEFAULT_PLUGINS,
    PointError,
    PointPlugins,
    Profile,
)
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.plugins.registry import GATED
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster


@dataclass(frozen=True)
class Sorts:
    name: str = "Sorts"

    def sort_key(self, pod, timestamp):
        return (timestamp,)


@dataclass(frozen=True)
class Filters:
    name: str

    def filter(self, state, pod, node):
        return None


@dataclass(frozen=True)
class Scores:
    name: str
    calls: list = field(default_factory=list, compare=False)

    def filter(self, state, pod, node):
        return None

    def score(self, state, pod, node):
        return 1


PLUGINS = ((Sorts(), 0), (Filters("a"), 0), (Scores("b"), 2), (Filters("c"), 0))


def plugin_order(points, plugins=PLUGINS, everywhere=None):
    named = tuple((plugin.name, weight) for plugin, weight in plugins)
    return PluginOrder(
        Profile("s", named if everywhere is None else everywhere, points=points), plugins
    )


def filters(*enabled, disabled=()):
    return {"Filter": PointPlugins(tuple((name, 0) for name in enabled), disabled)}


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param({}, "abc", id="all filters, in the profile's order"),
        pytest.param(filters("c", "a"), "cab", id="enabled filters first, in the configured order"),
        pytest.param(filters(disabled=("b",)), "ac", id="a disabled filter is left out"),
        pytest.param(
            filters("b", disabled=("b",)),
            "acb",
            id="a filter that is disabled and enabled comes last",
        ),
        pytest.param(filters("b", disabled=(ALL,)), "b", id="only the enabled filter"),
        pytest.param(filters(disabled=(ALL,)), "", id="no filters"),
        pytest.param(
            filters("NodeName", "c"), "cab", id="an absent plugin of upstream is no error"
        ),
    ],
)
def test_filters_run_in_the_order_of_the_profile(points, expected):
    assert [plugin.name for plugin in plugin_order(points).at("Filter")] == list(expected)


def test_a_plugin_of_one_point_runs_only_there_and_after_the_others():
    found = plugin_order(filters("b"), everywhere=(("Sorts", 0), ("a", 0), ("c", 0)))
    assert [plugin.name for plugin in found.at("Filter")] == ["a", "c", "b"]
    assert found.at("Score") == []


def test_the_configuration_of_one_point_does_not_affect_others():
    found = plugin_order(filters(disabled=(ALL,)))
    assert [(plugin.name, weight) for plugin, weight in found.scorers()] == [("b", 2)]


@pytest.mark.parametrize(("given", "expected"), [(7, 7), (0, 1)])
def test_the_weight_at_score_takes_precedence_and_zero_means_one(given, expected):
    found = plugin_order({"Score": PointPlugins((("b", given),))})
    assert [weight for _, weight in found.scorers()] == [expected]


@pytest.mark.parametrize(
    ("points", "problem"),
    [
        ({"Score": PointPlugins((("a", 1),))}, 'plugin "a" does not extend ScorePlugin plugin'),
        (filters("a", "a"), 'plugin "a" already registered as "FilterPlugin"'),
    ],
)
def test_a_plugin_without_the_methods_of_its_point_is_refused(points, problem):
    with pytest.raises(PointError, match=problem):
        plugin_order(points).at(next(iter(points)))


@pytest.mark.parametrize("plugins", [PLUGINS[1:], (*PLUGINS, (Sorts("other"), 0))])
def test_exactly_one_plugin_sorts_the_queue(plugins):
    with pytest.raises(PointError, match=f"but got {len(plugins) // 4 * 2}"):
        plugin_order({}, plugins).queue_sort()


def test_a_plugin_added_later_runs_in_its_configured_position():
    everywhere = (("Sorts", 0), ("a", 0), ("late", 0), ("b", 2), ("c", 0))
    found = plugin_order({}, everywhere=everywhere)
    found.add(Filters("late"))
    assert [plugin.name for plugin in found.at("Filter")] == ["a", "late", "b", "c"]


def test_every_default_plugin_has_its_extension_points_of_upstream():
    assert {*(name for name, _ in DEFAULT_PLUGINS), *GATED} == set(UPSTREAM_POINTS)
    assert {point for points in UPSTREAM_POINTS.values() for point in points} <= set(POINTS)


def test_a_profile_needs_the_plugins_of_all_its_points():
    profile = Profile("s", (("a", 1),), points=filters("x", "a", "x"))
    assert profile.all_plugins == (("a", 1), ("x", 0))


class Unnamed:
    def filter(self, state, pod, node):
        return None


class Columns(Filters):
    def __init__(self):
        self.filter_columns = lambda state, pod, table, rows: None


class SwitchedOff(Scores):
    score = None  # type: ignore[assignment]


@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_takes_part_at_the_points_whose_protocol_it_implements(point):
    """Also a plugin without a name, and plugins whose instances add or drop a method."""
    odd = (Unnamed(), Columns(), SwitchedOff("off"), object())
    handle = PluginHandle(Cluster(), Nominator(), WaitingPods())
    framework = build_profile(Profile(), handle, TieBreak(0)).framework
    built_in = [framework.find(name) for name in DEFAULT_PLUGINS]
    for plugin in (*odd, *(plugin for plugin, _ in PLUGINS), *built_in):
        assert takes_part(plugin, point) == isinstance(plugin, _PROTOCOLS[point])
