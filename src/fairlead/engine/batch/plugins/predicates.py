"""predicates: where a task may run, by the scheduler's own filter plugins.

Which ones is a matter of the configuration's rules. Resources are not among them: the actions ask
for idle room, for room that is becoming free, or for none at all.
upstream: pkg/scheduler/plugins/predicates/predicates.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.batch.nodes.room_fit import MaxPods
from fairlead.engine.batch.plugins.facet import filter_facet
from fairlead.engine.batch.plugins.scheduler_plugin import build_scheduler_plugin
from fairlead.engine.batch.rules import PRESSURE_CHECKS, BatchRules
from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")


class Predicates:
    """Node filters."""

    name = "predicates"

    def __init__(self, rules: BatchRules, arguments: Mapping[str, str]) -> None:
        """`arguments` may switch on the checks for pressure."""
        self._names = [*rules.filters]
        wanted = [check for key, check in PRESSURE_CHECKS.items() if arguments.get(key) in _TRUE]
        if wanted:
            # upstream asks them before inter-pod affinity, which is the dearest.
            at = self._names.index("InterPodAffinity")
            self._names[at:at] = wanted

    def node_filters(self, handle: BatchHandle) -> list[SchedulerPlugin]:
        """Filters of the scheduler, and the number of pods."""
        built = (build_scheduler_plugin(name, handle) for name in self._names)
        return [MaxPods(), *map(filter_facet, built)]
