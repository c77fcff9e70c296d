"""Giving: which jobs may lose members for the sake of another, and what room that could make.

Who loses which member is for the plugins to say, node by node and member by member. In a full
cluster nearly all of that is asked in vain, so they are asked about whole jobs first; a node on
which the members of those that are left do not occupy enough need not be looked at.
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
    """The jobs, and what their running tasks occupy by [resource, row]: no more can be freed."""

    jobs: Sequence[JobInfo]
    potential: Ints


class Givers:
    """The jobs that are asked on behalf of several takers, as they are when that begins."""

    def __init__(self, session: Session, kind: EvictionKind, jobs: Iterable[JobInfo]) -> None:
        """Those of `jobs` that run."""
        self._session = session
        self._kind = kind
        self._jobs = [job for job in jobs if job.by_status[TaskStatus.RUNNING]]
        self._known: dict[tuple[str, ...], Giving] = {}

    def for_job(self, taker: JobInfo, voters: Voters) -> Giving:
        """Those of whom `voters` do not say that they keep all their members."""
        found = self._not_spared(taker, voters)
        key = tuple([job.id for job in found])
        giving = self._known.get(key)
        if giving is None:
            giving = self._known[key] = Giving(found, self._potential(found))
        return giving

    def _not_spared(self, taker: JobInfo, voters: Voters) -> list[JobInfo]:
        """Those whom no plugin spares that can speak for the others.

        Where one tier decides alone, the first can: whom it does not name is nobody's victim, for
        later tiers start with what it has left over, if that is nobody (tier-carry).
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
