"""predicates: filters nodes with the Filter plugins of the default scheduler.

`BatchRules.filters` of the configuration lists the plugins. The plugins do not check resources,
because each action compares different resources: idle, releasing, or none.

upstream: pkg/scheduler/plugins/predicates/predicates.go
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.engine.batch.nodes.room_fit import MaxPods
from fairlead.engine.batch.plugins.argument import BOOLEAN
from fairlead.engine.batch.plugins.partial_plugin import build_scheduler_plugin, filtering_part
from fairlead.engine.batch.rules import PRESSURE_CHECKS, BatchRules
from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin


class Predicates:
    """Filters nodes with the Filter plugins of the default scheduler."""

    name = "predicates"

    def __init__(self, rules: BatchRules, arguments: Mapping[str, str]) -> None:
        """Read from `arguments` the node pressure checks that are switched on."""
        self._names = [*rules.filters]
        wanted = [
            check
            for key, check in PRESSURE_CHECKS.items()
            if BOOLEAN.read(arguments, key, default=False)
        ]
        if wanted:
            # before inter-pod affinity, which is the most expensive filter, as in upstream
            at = self._names.index("InterPodAffinity")
            self._names[at:at] = wanted

    def predicates(self, handle: BatchHandle) -> list[SchedulerPlugin]:
        """Return the selected Filter plugins, preceded by the check of the number of pods."""
        built = (build_scheduler_plugin(name, handle) for name in self._names)
        return [MaxPods(), *map(filtering_part, built)]
