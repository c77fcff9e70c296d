"""Builds the node controllers' configuration from options and a scenario's settings."""

from __future__ import annotations

from typing import Final

from fairlead.cli.options.controller import ControllerOptions, NodeFlags
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.input.error import InputError
from fairlead.whatif.scenario.settings import ControllerManagerSettings

NO_SETTINGS: Final = ControllerManagerSettings()


def node_lifecycle(
    options: ControllerOptions,
    settings: ControllerManagerSettings = NO_SETTINGS,
    release: Release = CURRENT,
) -> NodeLifecycleConfig:
    """Return the node controllers' configuration; `options` take precedence over `settings`.

    Flags that are in neither have the defaults of the Kubernetes version `release`. Raises
    InputError for a value that is not valid, and for an option that would have no effect.
    """
    config = controller_manager(release, {**settings.as_flags, **options.flags})
    require_effect(options, config)
    return config


def require_effect(options: NodeFlags, config: NodeLifecycleConfig) -> None:
    """Raise InputError if --pod-eviction-timeout is given but `config` evicts pods by taints."""
    if options.pod_eviction_timeout and config.evicts_by_taint:
        raise InputError(
            "--pod-eviction-timeout",
            "needs either --enable-taint-manager false, or both --behave-like 1.16 and "
            "--feature-gates TaintBasedEvictions=false",
        )
