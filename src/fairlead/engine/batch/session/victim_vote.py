"""Which of the candidates are victims: what the plugins of all tiers say together.

A plugin that has a say names those that may go. By default every plugin can veto: victims are
those that all of them name. kube-batch lets the first tier that names any decide alone
(tier-first-wins), and starts each tier with what the tiers before left over (tier-carry).
upstream: framework/session_plugins.go: Preemptable, Reclaimable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.task import TaskInfo

Ask = Callable[[Any], Sequence[TaskInfo]]


def vote(voters: Iterable[tuple[Any, ...]], ask: Ask, defects: BatchDefects) -> list[TaskInfo]:
    """The victims, in the order of the first plugin that was asked; none if nobody was."""
    first_wins = defects.has(Defect.TIER_FIRST_WINS)
    carries = not first_wins or defects.has(Defect.TIER_CARRY)
    left: list[TaskInfo] | None = None
    for tier in voters:
        if not carries:
            left = None
        for plugin in tier:
            named = ask(plugin)
            left = list(named) if left is None else _both(left, named)
            if not left and not first_wins:
                return []
        if left and first_wins:
            return left
    return left or []


def _both(left: list[TaskInfo], named: Sequence[TaskInfo]) -> list[TaskInfo]:
    uids = {task.id for task in named}
    return [task for task in left if task.id in uids]
