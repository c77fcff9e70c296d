"""Builds the scheduler's configuration that applies if there is no configuration file."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.engine.configuration.release import Release
from fairlead.engine.framework.profile import Profile
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.scheduling.config import SchedulerConfig


def default_config(release: Release, factories: Mapping[str, Factory]) -> SchedulerConfig:
    """Return the SchedulerConfig of `release`.

    `factories` maps the names of users' plugins to the functions that build them.
    """
    version = release.scheduler
    profile = Profile(plugins=version.plugins, args=version.args)
    return SchedulerConfig(
        (profile,), version.backoff, out_of_tree=factories, version=version, gates=release.gates
    )
