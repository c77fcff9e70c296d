"""What `fairlead extender` is made of: plugins from a configuration, and a cluster to begin with.

Plugins that are named without a configuration are asked alone, for whoever asks has all of
Kubernetes' own.
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.registry.store import Store
from fairlead.engine.configuration.check import refuse_unserved
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.extender_backend import ExtenderBackend
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.explaining import loaded
from fairlead.whatif.input_error import InputError
from fairlead.whatif.scheduler_config import read_scheduler_config
from fairlead.whatif.snapshot import read_snapshot
from fairlead.whatif.user_plugin import OPTION, UserPlugins
from fairlead.worlds.simulation.seeded_ids import SeededIds

# A profile must have these two, whatever it is asked.
_LEAST: Final = (("PrioritySort", 0), ("DefaultBinder", 0))


def read_adviser(config: str | None, plugins: UserPlugins, snapshot: str | None) -> ExtenderBackend:
    """An adviser with the plugins of `config` and with `plugins`, which knows `snapshot`.

    Without either, the default plugins are asked. Raises InputError.
    """
    scheduler = _alone(plugins) if config is None and plugins.named else None
    if scheduler is None:
        scheduler = read_scheduler_config(config, plugins)
    if scheduler.extenders:
        problem = "an extender asks no extenders"
        raise InputError(config or "", problem, field="extenders")
    if snapshot is None:
        return ExtenderBackend(scheduler)
    return ExtenderBackend(scheduler, loaded(read_snapshot(snapshot), Store(SeededIds(0))))


def _alone(plugins: UserPlugins) -> SchedulerConfig:
    profile = plugins.placed(Profile(plugins=_LEAST))
    config = SchedulerConfig((profile,), out_of_tree=plugins.factories())
    try:
        refuse_unserved(config, only_profile=True)
    except ConfigurationError as cause:
        raise InputError(OPTION, cause.problem, field=cause.field) from None
    return config
