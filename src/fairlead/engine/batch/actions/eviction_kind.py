"""EvictionKind: preemption and reclaim, with the plugin methods that each one calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task import TaskInfo
from fairlead.engine.batch.session.plugin import SparesFromPreemption, SparesFromReclaim
from fairlead.engine.batch.session.tier import Tiers, Voters


@dataclass(frozen=True, slots=True)
class EvictionKind:
    """`ask(plugin, task, candidates)` calls the plugin's method that returns possible victims.

    A plugin of type `sparing` can also rule out a whole job before that:
    `spares(plugin, taker, giver)`.
    """

    why: str
    voters: Callable[[Tiers], Voters]
    ask: Callable[[Any, TaskInfo, Sequence[TaskInfo]], Sequence[TaskInfo]]
    sparing: type[Any]
    spares: Callable[[Any, JobInfo, JobInfo], bool]


PREEMPTION: Final = EvictionKind(
    "preempt",
    lambda tiers: tiers.preempt_voters,
    lambda plugin, task, candidates: plugin.preemptable(task, candidates),
    SparesFromPreemption,
    lambda plugin, taker, giver: plugin.spares_from_preemption(taker, giver),
)
RECLAIM: Final = EvictionKind(
    "reclaim",
    lambda tiers: tiers.reclaim_voters,
    lambda plugin, task, candidates: plugin.reclaimable(task, candidates),
    SparesFromReclaim,
    lambda plugin, taker, giver: plugin.spares_from_reclaim(taker, giver),
)
