"""check_profiles: checks a configuration by building its profiles.

upstream: pkg/scheduler/profile/profile.go: NewMap
"""

from __future__ import annotations

from typing import Final

from fairlead.api.text.field_problem import invalid
from fairlead.engine.configuration.error import ConfigurationError, at
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import (
    BuiltProfile,
    PluginHandle,
    ProfileError,
    Shared,
    build_profile,
)
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster

_SAME: Final = "must be the same for all profiles"


def check_profiles(config: SchedulerConfig, *, only_profile: bool = False) -> None:
    """Raise ConfigurationError if a profile cannot be built, or the profiles differ in QueueSort.

    If `only_profile` is set, the error's field is a path within the profile, not within the file.
    """
    first: BuiltProfile | None = None
    for number, profile in enumerate(config.profiles):
        where = "" if only_profile else f"profiles[{number}]"
        built = _build(where, profile, config)
        if first is not None:
            _refuse_other_order(where, config.profiles[0], first, profile, built)
        first = first or built


def _build(where: str, profile: Profile, config: SchedulerConfig) -> BuiltProfile:
    handle = PluginHandle(Cluster(), Nominator())
    try:
        shared = Shared(version=config.version)
        return build_profile(profile, handle, TieBreak(0), config.out_of_tree, shared=shared)
    except ProfileError as cause:
        raise ConfigurationError(where, str(cause)) from None


def _refuse_other_order(
    where: str, first: Profile, first_built: BuiltProfile, other: Profile, built: BuiltProfile
) -> None:
    """Raise ConfigurationError if the QueueSort plugins or their arguments differ.

    All profiles share one queue, so they must order its pods in the same way. `where` is the path
    of `other` in the file.
    """
    name, before = built.framework.queue_sort.name, first_built.framework.queue_sort.name
    if name != before:
        raise ConfigurationError(at(where, "plugins.queueSort"), invalid(name, _SAME))
    if other.args.get(name, {}) != first.args.get(name, {}):
        raise ConfigurationError(at(where, "pluginConfig"), invalid(name, f"queueSort {_SAME}"))
