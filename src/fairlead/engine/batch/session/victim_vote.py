"""vote: combines the victims that the plugins of all tiers name.

Each plugin with the extension point names the candidates that may be evicted. By default every
plugin can veto: victims are those that all plugins name. In kube-batch the first tier that names
any decides alone (tier-first-wins), and each tier starts with what the tiers before it left over
(tier-carry).
upstream: framework/session_plugins.go: Preemptable, Reclaimable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.task import TaskInfo

Ask = Callable[[Any], Sequence[TaskInfo]]


def vote(voters: Iterable[tuple[Any, ...]], ask: Ask, defects: BatchDefects) -> list[TaskInfo]:
    """The victims, in the order of the first plugin that was called; none without plugins."""
    first_wins = defects.has(Defect.TIER_FIRST_WINS)
    carries = not first_wins or defects.has(Defect.TIER_CARRY)
    left: list[TaskInfo] | None = None
    for tier in voters:
        if not carries:
            left = None
        for plugin in tier:
            named = ask(plugin)
            left = list(named) if left is None else _intersection(left, named)
            if not left and not first_wins:
                return []
        if left and first_wins:
            return left
    return left or []


def _intersection(left: list[TaskInfo], named: Sequence[TaskInfo]) -> list[TaskInfo]:
    uids = {task.id for task in named}
    return [task for task in left if task.id in uids]
