"""drf: dominant resource fairness between jobs.

For each resource, a job holds a fraction of the cluster's total. The largest of these fractions is
the job's dominant share. The job with the smallest share is served first (Ghodsi et al., NSDI
2011).

upstream: plugins/drf/drf.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.shares.share import Total, cluster_total, dominant_share

if TYPE_CHECKING:
    from fairlead.engine.batch.session.session import Session

# Shares that differ by less are equal (drf.go: shareDelta).
_SHARE_DELTA: Final = 0.000001


class Drf:
    """Orders jobs, and chooses preemption victims, by dominant share."""

    name = "drf"

    def __init__(self) -> None:
        """Start empty; shares are valid after `on_session_open`."""
        self._total: Total = ()

    def on_session_open(self, session: Session) -> None:
        """Compute the total resources of the cluster."""
        self._total = cluster_total(session.room, session.rules)

    def share_of(self, job: JobInfo) -> float:
        """Return the job's current dominant share."""
        return dominant_share(job.held, self._total)

    def job_order(self, job: JobInfo) -> float:
        """Return the sort key of a job: a job with a smaller share comes first."""
        return self.share_of(job)

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates whose eviction is fair according to dominant shares.

        Suppose that a candidate is evicted and the preemptor is placed. Then the share of the
        candidate's job must be at least the share of the preemptor's job. Members of the
        candidate's job that come earlier in `candidates` count as evicted, too.
        """
        mine = list(preemptor.job.held)
        add_amounts(mine, preemptor.request.running, 1)
        my_share = dominant_share(mine, self._total)
        left: dict[str, list[int]] = {}
        victims = []
        for task in candidates:
            theirs = left.setdefault(task.job.id, list(task.job.held))
            add_amounts(theirs, task.request.running, -1)
            their_share = dominant_share(theirs, self._total)
            if my_share < their_share or abs(my_share - their_share) <= _SHARE_DELTA:
                victims.append(task)
        return victims
