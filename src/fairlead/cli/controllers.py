"""The node controllers' configuration, from options and from what a scenario says."""

from __future__ import annotations

from typing import Final

from fairlead.cli.outage_options import ControllerOptions
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.controller_manager import controller_manager
from fairlead.whatif.settings import ControllerManagerSettings

VERSION_OPTION: Final = "--behave-like"
NO_SETTINGS: Final = ControllerManagerSettings()


def node_lifecycle(
    options: ControllerOptions, settings: ControllerManagerSettings = NO_SETTINGS
) -> NodeLifecycleConfig:
    """What `options` ask for, over what `settings` do. Raises InputError."""
    return controller_manager(
        options.behave_like or str(settings.version),
        {**settings.as_flags, **options.flags},
        of_version=VERSION_OPTION,
        prefix="--",
    )
