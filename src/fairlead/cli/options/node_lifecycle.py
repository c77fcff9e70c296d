"""Builds the node controllers' configuration from options and a scenario's settings."""

from __future__ import annotations

from typing import Final

from fairlead.cli.options.controller import ControllerOptions
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.scenario.settings import ControllerManagerSettings

VERSION_OPTION: Final = "--behave-like"
NO_SETTINGS: Final = ControllerManagerSettings()


def node_lifecycle(
    options: ControllerOptions, settings: ControllerManagerSettings = NO_SETTINGS
) -> NodeLifecycleConfig:
    """The configuration of `settings`, overridden by `options`. Raises InputError."""
    return controller_manager(
        options.behave_like or str(settings.version),
        {**settings.as_flags, **options.flags},
        of_version=VERSION_OPTION,
        prefix="--",
    )
