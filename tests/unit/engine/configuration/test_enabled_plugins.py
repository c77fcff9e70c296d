"""The default plugins, and how a configuration changes them by upstream's merging rules."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.configuration.enabled_plugins import PluginChoice
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.v1 import PluginSetForm, PluginsForm
from fairlead.engine.framework.profile import ALL, DEFAULT_PLUGINS, PointPlugins

DEFAULTS = dict(DEFAULT_PLUGINS)
CHOICE = PluginChoice("plugins", {"Mine": 7}.get)


def everywhere(enabled=(), disabled=()):
    form = {"enabled": list(enabled), "disabled": [{"name": name} for name in disabled]}
    return CHOICE.everywhere(msgspec.convert(form, PluginSetForm))


def at_points(**points):
    return CHOICE.at_points(msgspec.convert(points, PluginsForm))


def test_an_empty_configuration_is_the_default_profile():
    assert everywhere() == DEFAULT_PLUGINS
    assert at_points() == {}


def test_a_configured_default_plugin_keeps_its_position_and_gets_the_weight():
    found = everywhere([{"name": "NodeAffinity", "weight": 9}])
    assert [name for name, _ in found] == list(DEFAULTS)
    assert dict(found) == DEFAULTS | {"NodeAffinity": 9}


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        pytest.param("TaintToleration", 1, id="a default plugin gets 1 instead of its default"),
        pytest.param("Mine", 7, id="a user's plugin gets its registered weight"),
        pytest.param("NodeName", 0, id="a plugin that does not score has no weight"),
    ],
)
def test_the_default_weights_of_plugins(name, weight):
    assert dict(everywhere([{"name": name}]))[name] == weight


def test_disabled_plugins_are_removed_and_reenabled_plugins_come_last():
    found = [name for name, _ in everywhere([{"name": "NodeName"}], ["NodeName", "ImageLocality"])]
    assert found[-1] == "NodeName"
    assert set(DEFAULTS) - set(found) == {"ImageLocality"}


def test_with_all_plugins_disabled_the_enabled_ones_remain_in_order():
    names = ("Mine", "DefaultBinder", "PrioritySort")
    found = everywhere([{"name": name} for name in names], [ALL])
    assert [name for name, _ in found] == list(names)


def test_plugins_of_single_extension_points_are_kept():
    found = at_points(
        score={"enabled": [{"name": "Mine", "weight": 3}], "disabled": [{"name": "ImageLocality"}]},
        filter={"enabled": [{"name": "NodeName"}], "disabled": [{"name": ALL}]},
    )
    assert found == {
        "Score": PointPlugins((("Mine", 3),), ("ImageLocality",)),
        "Filter": PointPlugins((("NodeName", 0),), (ALL,)),
    }


@pytest.mark.parametrize("name", ["NodePreferAvoidPods", "EBSLimits", "SelectorSpread"])
def test_removed_plugins_may_be_disabled(name):
    assert everywhere(disabled=[name]) == DEFAULT_PLUGINS
    assert at_points(score={"disabled": [{"name": name}]})["Score"].disabled == (name,)


@pytest.mark.parametrize(
    ("ask", "field", "problem"),
    [
        (lambda: everywhere([{"name": "Nod"}]),
         "plugins.multiPoint.enabled[0].name", "no plugin 'Nod'"),
        (lambda: everywhere([{"name": "NodeNam"}]),
         "plugins.multiPoint.enabled[0].name", "did you mean NodeName?"),
        (lambda: everywhere(disabled=["Nod"]),
         "plugins.multiPoint.disabled[0].name", "no plugin 'Nod'"),
        (lambda: everywhere([{"name": "Mine"}, {"name": "Mine"}]),
         "plugins.multiPoint.enabled[1].name", 'Duplicate value: "Mine"'),
        (lambda: everywhere([{"name": "EBSLimits"}]),
         "plugins.multiPoint.enabled[0]", '"EBSLimits": was invalid in version "v1" (Kube'),
        (lambda: everywhere([{"name": "SelectorSpread"}]),
         "plugins.multiPoint.enabled[0].name", "is not in Kubernetes any more"),
        (lambda: everywhere([{"name": "Mine", "weight": -1}]),
         "plugins.multiPoint.enabled[0].weight", "Invalid value: -1: not in valid range"),
        (lambda: everywhere([{"name": "Mine", "weight": 1 << 31}]),
         "plugins.multiPoint.enabled[0].weight", "not in valid range [0, 2147483647]"),
        (lambda: at_points(score={"enabled": [{"name": "NodeName"}]}),
         "plugins.score.enabled[0].name", 'plugin "NodeName" does not extend ScorePlugin plugin'),
        (lambda: at_points(preBind={"disabled": [{"name": "Nobody"}]}),
         "plugins.preBind.disabled[0].name", "no plugin 'Nobody'"),
    ],
)  # fmt: skip
def test_invalid_plugins_are_refused_with_the_field(ask, field, problem):
    with pytest.raises(ConfigurationError) as refused:
        ask()
    assert refused.value.field == field
    assert problem in refused.value.problem
