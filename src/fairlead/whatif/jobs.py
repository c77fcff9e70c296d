"""What came of whole jobs in a run: how queues stood over time, and which groups wait, and why.

The record of the queues comes through the reporter, as everything that controllers tell; who waits
is asked of the sessions' own explanation when the run is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.batch.controller import Batch
from fairlead.batch.explanation import GroupExplanation, survey
from fairlead.core.instant import Instant
from fairlead.core.reporter import QueueStood, Record, Reporter
from fairlead.state.cluster import Cluster

EXPLAINED_MAX: Final = 100
"""Groups that are explained; others wait as these do, and each costs."""


@dataclass(frozen=True, slots=True)
class JobsOutcome:
    """`queues` and `waiting` are as at the end, `samples` in order of time."""

    queues: tuple[QueueStood, ...] = ()
    waiting: tuple[GroupExplanation, ...] = ()
    samples: tuple[QueueStood, ...] = ()

    def queue(self, name: str) -> QueueStood | None:
        """The queue called `name` at the end; None if no job was ever in it."""
        return next((queue for queue in self.queues if queue.queue == name), None)


NO_JOBS: Final = JobsOutcome()


@dataclass(slots=True)
class JobRecorder:
    """A Reporter that keeps how queues stand, and passes everything on."""

    reporter: Reporter
    samples: list[QueueStood] = field(default_factory=list)

    def report(self, record: Record) -> None:
        """Take note of `record`."""
        if isinstance(record, QueueStood):
            self.samples.append(record)
        self.reporter.report(record)

    def outcome(self, batch: Batch | None, cluster: Cluster, now: Instant) -> JobsOutcome:
        """What came of it by `now`; the sessions were held by `batch` on `cluster`."""
        if batch is None:
            return NO_JOBS
        found = survey(batch.composition, cluster, now, EXPLAINED_MAX)
        return JobsOutcome(_newest(self.samples), found.waiting, tuple(self.samples))


def _newest(samples: Iterable[QueueStood]) -> tuple[QueueStood, ...]:
    by_name = {sample.queue: sample for sample in samples}
    return tuple(by_name[name] for name in sorted(by_name))


def contended_resource(outcome: JobsOutcome, offered: Mapping[str, int]) -> str:
    """Of what there is least for all: the largest request of the cluster's, at any time.

    "" where queues ask for nothing that is `offered`.
    """
    asked: dict[str, dict[str, int]] = {}
    most: dict[str, float] = {}
    for sample in outcome.samples:
        asked[sample.queue] = dict(sample.request)
        for resource in sample.request:
            whole = offered.get(resource, 0)
            total = sum(request.get(resource, 0) for request in asked.values())
            if whole and total:
                most[resource] = max(most.get(resource, 0.0), total / whole)
    return max(sorted(most), key=most.__getitem__, default="")
