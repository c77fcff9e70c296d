"""Builds the adviser of `fairlead extender` from a configuration, plugins and a snapshot.

Without a configuration, only the given plugins run, because the calling kube-scheduler already runs
Kubernetes' own plugins.
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.registry.store import Store
from fairlead.engine.configuration.check import refuse_unserved
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.extender_backend import ExtenderBackend
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.user_plugin import OPTION, UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.snapshot import load_objects, read_snapshot
from fairlead.worlds.seeded_ids import SeededIds

# required in every profile
_REQUIRED: Final = (("PrioritySort", 0), ("DefaultBinder", 0))


def read_adviser(config: str | None, plugins: UserPlugins, snapshot: str | None) -> ExtenderBackend:
    """Return an adviser with the plugins of `config` and `plugins` and the objects of `snapshot`.

    Without `config` and `plugins`, the adviser runs the default plugins. Raises InputError.
    """
    scheduler = _without_defaults(plugins) if config is None and plugins.named else None
    if scheduler is None:
        scheduler = read_scheduler_config(config, plugins, allow_extenders=True)
    if scheduler.extenders:
        problem = "an extender cannot call extenders"
        raise InputError(config or "", problem, field="extenders")
    if snapshot is None:
        return ExtenderBackend(scheduler)
    return ExtenderBackend(scheduler, load_objects(read_snapshot(snapshot), Store(SeededIds(0))))


def _without_defaults(plugins: UserPlugins) -> SchedulerConfig:
    profile = plugins.placed(Profile(plugins=_REQUIRED))
    config = SchedulerConfig((profile,), out_of_tree=plugins.factories())
    try:
        refuse_unserved(config, only_profile=True)
    except ConfigurationError as cause:
        raise InputError(OPTION, cause.problem, field=cause.field) from None
    return config
