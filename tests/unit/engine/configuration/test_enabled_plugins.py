"""The default plugins, as a configuration changes them: upstream's rules of merging."""

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


def test_nothing_said_is_the_default_profile():
    assert everywhere() == DEFAULT_PLUGINS
    assert at_points() == {}


def test_a_default_plugin_named_again_keeps_its_place_and_takes_its_weight():
    found = everywhere([{"name": "NodeAffinity", "weight": 9}])
    assert [name for name, _ in found] == list(DEFAULTS)
    assert dict(found) == DEFAULTS | {"NodeAffinity": 9}


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        pytest.param("TaintToleration", 1, id="not the default's three"),
        pytest.param("Mine", 7, id="a user's plugin as the user said"),
        pytest.param("NodeName", 0, id="who gives no scores has none"),
    ],
)
def test_a_weight_left_out(name, weight):
    assert dict(everywhere([{"name": name}]))[name] == weight


def test_disabled_plugins_are_gone_and_one_enabled_again_comes_last():
    found = [name for name, _ in everywhere([{"name": "NodeName"}], ["NodeName", "ImageLocality"])]
    assert found[-1] == "NodeName"
    assert set(DEFAULTS) - set(found) == {"ImageLocality"}


def test_of_nobody_only_who_is_named_is_left_in_that_order():
    names = ("Mine", "DefaultBinder", "PrioritySort")
    found = everywhere([{"name": name} for name in names], [ALL])
    assert [name for name, _ in found] == list(names)


def test_single_points_are_kept_as_said():
    found = at_points(
        score={"enabled": [{"name": "Mine", "weight": 3}], "disabled": [{"name": "ImageLocality"}]},
        filter={"enabled": [{"name": "NodeName"}], "disabled": [{"name": ALL}]},
    )
    assert found == {
        "Score": PointPlugins((("Mine", 3),), ("ImageLocality",)),
        "Filter": PointPlugins((("NodeName", 0),), (ALL,)),
    }


@pytest.mark.parametrize("name", ["NodePreferAvoidPods", "EBSLimits", "SelectorSpread"])
def test_switching_off_what_is_not_there_any_more_is_no_mistake(name):
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
def test_what_cannot_be_is_refused_naming_the_field(ask, field, problem):
    with pytest.raises(ConfigurationError) as refused:
        ask()
    assert refused.value.field == field
    assert problem in refused.value.problem
