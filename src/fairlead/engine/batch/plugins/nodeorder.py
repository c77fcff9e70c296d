"""nodeorder: scores nodes with the Score plugins of the default scheduler.

`BatchRules.scorers` lists these plugins and their default weights. The arguments of nodeorder can
set other weights.

upstream: pkg/scheduler/plugins/nodeorder/nodeorder.go
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.engine.batch.plugins.argument import INTEGER
from fairlead.engine.batch.plugins.partial_plugin import build_scheduler_plugin, scoring_part
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin


class Nodeorder:
    """Scores nodes with the Score plugins of the default scheduler."""

    name = "nodeorder"

    def __init__(self, rules: BatchRules, arguments: Mapping[str, str]) -> None:
        """Read the weights from `arguments`; ignore invalid numbers, as upstream does."""
        self._weights = [
            (name, INTEGER.read(arguments, key, default)) for name, key, default in rules.scorers
        ]

    def node_prioritizers(self, handle: BatchHandle) -> list[tuple[SchedulerPlugin, int]]:
        """Return the scorers with a nonzero weight."""
        return [
            (scoring_part(build_scheduler_plugin(name, handle)), weight)
            for name, weight in self._weights
            if weight
        ]
