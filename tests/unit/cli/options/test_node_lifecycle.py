"""Options about the node controllers take precedence over the settings of a scenario."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest
from msgspec.structs import replace

from fairlead.cli.options.controller import ControllerOptions
from fairlead.cli.options.node_lifecycle import node_lifecycle
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.instant import seconds
from fairlead.engine.nodelifecycle.flag import FLAGS, config_of_flags
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36
from fairlead.whatif.input.error import InputError
from fairlead.whatif.scenario.settings import ControllerManagerSettings


def test_without_options_and_settings_the_defaults_are_upstreams():
    config = node_lifecycle(ControllerOptions())
    assert config.profile.version == "1.36"
    assert config.monitor_grace == seconds(50)
    assert config.is_taking_over


def test_an_option_overrides_only_its_own_flag_of_a_scenario():
    settings = ControllerManagerSettings(
        flags={"node-eviction-rate": 0.5, "--node-monitor-grace-period": "20s"}
    )
    config = node_lifecycle(ControllerOptions(node_eviction_rate="2"), settings)
    assert config.node_eviction_rate == 2
    assert config.monitor_grace == seconds(20)


def test_flags_of_one_version_are_refused_in_other_versions():
    settings = ControllerManagerSettings(flags={"enable-taint-manager": False})
    old = node_lifecycle(ControllerOptions(), settings, release_of("1.16"))
    assert not old.enable_taint_manager
    with pytest.raises(InputError, match="--enable-taint-manager: Kubernetes"):
        node_lifecycle(ControllerOptions(), settings)


TIMEOUT = ControllerOptions(pod_eviction_timeout="2m")
WITHOUT_TAINT_MANAGER = ControllerOptions(pod_eviction_timeout="2m", enable_taint_manager="false")


def test_a_timeout_applies_without_the_feature_gate():
    older = node_lifecycle(TIMEOUT, release=release_of("1.16", {"TaintBasedEvictions": False}))
    assert older.pod_eviction_timeout == seconds(120)


@pytest.mark.parametrize("version", ["1.16", "1.19", "1.21"])
def test_a_timeout_applies_without_the_taint_manager(version):
    config = node_lifecycle(WITHOUT_TAINT_MANAGER, release=release_of(version))
    assert config.pod_eviction_timeout == seconds(120)
    settings = ControllerManagerSettings(flags={"enable-taint-manager": False})
    assert node_lifecycle(TIMEOUT, settings, release_of(version)) == config


@pytest.mark.parametrize("version", ["1.16", "1.19", "1.21"])
def test_a_timeout_is_refused_where_taints_evict(version):
    problem = "--pod-eviction-timeout: needs either --enable-taint-manager false, or both"
    with pytest.raises(InputError, match=problem):
        node_lifecycle(TIMEOUT, release=release_of(version))


DEFAULT = re.compile(r"\(default: ([^;)]+)|1\.21: ([^)]+)\)")


def test_help_texts_state_the_defaults_of_the_configuration():
    for field, hint in get_type_hints(ControllerOptions, include_extras=True).items():
        (first, _), *others = DEFAULT.findall(hint.__metadata__[0].help)
        name, old = field.replace("_", "-"), others[0][1] if others else first
        assert monitoring({name: old}, V1_16) == monitoring({}, V1_16)
        if not FLAGS[name].is_old:
            assert monitoring({name: first}, V1_36) == monitoring({}, V1_36)


def monitoring(flags, profile):
    """Return the configuration for `flags`, with the resulting grace period."""
    config = config_of_flags(flags, profile)
    return replace(config, node_monitor_grace_period=config.monitor_grace)
