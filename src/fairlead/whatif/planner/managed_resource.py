"""Profiles that check the resources of extenders, for placements without extenders.

If a resource of an extender is marked `ignoredByScheduler`, NodeResourcesFit does not check it. If
the extender is not called either, nothing would check this resource: a pod that requests a GPU
would fit nodes without GPUs. So NodeResourcesFit checks the resource again, as kubelets do.
NodeResourcesFit still ignores a resource that no node reports, because only the extender knows the
available amount.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.objects import ApiObject, Node
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig

_FIT: Final = "NodeResourcesFit"
_IGNORED: Final = "ignoredResources"


def profiles_without_extenders(
    config: SchedulerConfig, objects: Iterable[ApiObject]
) -> tuple[Profile, ...]:
    """Return `config.profiles`, changed so that NodeResourcesFit checks extenders' resources.

    If no node in `objects` reports such a resource, NodeResourcesFit still ignores the resource.
    """
    managed = {name for extender in config.extenders for name in extender.managed_resources}
    if not managed:
        return config.profiles
    reported: set[str] = set()
    for one in objects:
        if isinstance(one, Node):
            reported.update(one.status.allocatable)
    return tuple(_checking(managed & reported, profile) for profile in config.profiles)


def _checking(names: Collection[str], profile: Profile) -> Profile:
    """Return `profile`, changed so that it ignores no resource in `names`."""
    fit: dict[str, Any] = dict(profile.args.get(_FIT, {}))
    ignored = fit.get(_IGNORED, ())
    if not any(name in names for name in ignored):
        return profile
    fit[_IGNORED] = [name for name in ignored if name not in names]
    return replace(profile, args={**profile.args, _FIT: fit})
