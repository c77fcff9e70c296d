"""Invalid profiles: the error is one line that names the profile and the plugin."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.compose import ProfileError
from fairlead.testing.plugin_scene import PluginScene


class Fits:
    name = "Fits"

    def filter(self, state, pod, node):
        return None


class Nothing:
    name = "Nothing"


def profile_of(*plugins, **more):
    return Profile(plugins=tuple((name, 1) for name in plugins), **more)


def refusal(*plugins, profile):
    with pytest.raises(ProfileError) as refused:
        PluginScene(*plugins, profile=profile)
    return str(refused.value)


def test_an_unknown_plugin_is_refused_with_the_list_of_plugins():
    said = refusal(profile=profile_of("Fitz"))
    assert said.startswith("profile default-scheduler: no plugin 'Fitz'; known: ")
    assert "DefaultPreemption" in said
    assert "NodeResourcesFit" in said


def test_a_profile_without_a_bind_plugin_is_refused():
    said = refusal(profile=profile_of("PrioritySort", "NodeResourcesFit"))
    assert said == "profile default-scheduler: at least one bind plugin is needed"


def test_a_plugin_that_does_nothing_is_refused():
    said = refusal(Nothing, profile=profile_of("Nothing", "DefaultBinder"))
    assert said.startswith("profile default-scheduler: plugin Nothing: implements no extension")


def test_a_plugin_under_another_name_is_refused(stage):
    profile = profile_of("Alias", "DefaultBinder")
    with pytest.raises(ProfileError, match="plugin Alias: has the attribute name 'Fits'"):
        stage(profiles=(profile,), out_of_tree={"Alias": lambda _handle, _args: Fits()})


def test_invalid_arguments_are_refused_with_their_field():
    args = {"DefaultPreemption": {"minCandidateNodesAbsolute": -1}}
    profile = replace(Profile(plugins=DEFAULT_PLUGINS), args=args)
    said = refusal(profile=profile)
    assert "pluginConfig DefaultPreemption: minCandidateNodesAbsolute: Invalid value: -1" in said
