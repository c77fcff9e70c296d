"""Giving: the jobs that may lose members to another job, and how much room that could free.

Plugins choose victims node by node and member by member. In a full cluster almost all of those
calls find nothing, so plugins are first called once per job. A node is then searched only if the
members of the remaining jobs occupy enough of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairlead.engine.batch.actions.eviction_kind import EvictionKind
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task import TaskStatus
from fairlead.engine.batch.nodes.room import Ints
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.tier import Voters


@dataclass(frozen=True, slots=True)
class Giving:
    """`potential[resource, row]`: what the running tasks of `jobs` occupy, the most to free."""

    jobs: Sequence[JobInfo]
    potential: Ints


class Givers:
    """The jobs that may lose members, fixed when the search for several takers begins."""

    def __init__(self, session: Session, kind: EvictionKind, jobs: Iterable[JobInfo]) -> None:
        """Keep those of `jobs` that have running tasks."""
        self._session = session
        self._kind = kind
        self._jobs = [job for job in jobs if job.by_status[TaskStatus.RUNNING]]
        self._known: dict[tuple[str, ...], Giving] = {}

    def for_job(self, taker: JobInfo, voters: Voters) -> Giving:
        """The jobs that may lose members to `taker`: those that no voter spares."""
        found = self._not_spared(taker, voters)
        key = tuple([job.id for job in found])
        giving = self._known.get(key)
        if giving is None:
            giving = self._known[key] = Giving(found, self._potential(found))
        return giving

    def _not_spared(self, taker: JobInfo, voters: Voters) -> list[JobInfo]:
        """The jobs that no plugin spares, if that plugin's vote is decisive.

        Normally every plugin can veto. Where the first tier that names victims decides alone
        (tier-first-wins), only a veto in the first tier is decisive, and only if later tiers start
        with what the tiers before left over (tier-carry): an empty answer stays empty.
        """
        asked, kind, defects = self._jobs, self._kind, self._session.defects
        speaking = voters
        if defects.has(Defect.TIER_FIRST_WINS):
            first = next((tier for tier in voters if tier), ())
            speaking = (first,) if defects.has(Defect.TIER_CARRY) else ()
        for tier in speaking:
            for plugin in tier:
                if isinstance(plugin, kind.sparing):
                    asked = [job for job in asked if not kind.spares(plugin, taker, job)]
        return asked

    def _potential(self, jobs: Iterable[JobInfo]) -> Ints:
        freed, table = np.zeros_like(self._session.room.idle), self._session.table
        for job in jobs:
            for task in job.by_status[TaskStatus.RUNNING].values():
                node = table.find(task.node)
                if node is not None:
                    for column, amount in task.request.running:
                        freed[column, node.row] += amount
        return freed
