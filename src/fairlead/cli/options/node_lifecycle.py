"""Builds the node controllers' configuration from options and a scenario's settings."""

from __future__ import annotations

from typing import Final

from fairlead.cli.options.controller import ControllerOptions
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.scenario.settings import ControllerManagerSettings

NO_SETTINGS: Final = ControllerManagerSettings()


def node_lifecycle(
    options: ControllerOptions,
    settings: ControllerManagerSettings = NO_SETTINGS,
    release: Release = CURRENT,
) -> NodeLifecycleConfig:
    """Return the configuration of `settings` in the version `release`, overridden by `options`.

    Raises InputError.
    """
    return controller_manager(release, {**settings.as_flags, **options.flags})
