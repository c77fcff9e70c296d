"""What came of whole jobs in a run: how queues stood over time, and which groups wait, and why.

The record of the queues comes through the reporter, as everything that controllers tell; who waits
is asked of the sessions' own explanation when the run is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.batch.controller import Batch
from fairlead.engine.batch.explanation.explanation import GroupExplanation, survey
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodPreempting, QueueStood, Record, Reporter
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.gang_ledger import GangLedger, GangTally

EXPLAINED_MAX: Final = 100
"""Groups that are explained; others wait as these do, and each costs."""


@dataclass(frozen=True, slots=True)
class JobsOutcome:
    """`queues` and `waiting` are as at the end, `samples` in order of time."""

    queues: tuple[QueueStood, ...] = ()
    waiting: tuple[GroupExplanation, ...] = ()
    samples: tuple[QueueStood, ...] = ()
    gangs: GangTally = field(default_factory=GangTally)

    def queue(self, name: str) -> QueueStood | None:
        """The queue called `name` at the end; None if no job was ever in it."""
        return next((queue for queue in self.queues if queue.queue == name), None)


NO_JOBS: Final = JobsOutcome()


@dataclass(slots=True)
class JobRecorder:
    """A Reporter that keeps how queues stand, and passes everything on."""

    reporter: Reporter
    samples: list[QueueStood] = field(default_factory=list)
    ledger: GangLedger = field(default_factory=GangLedger)

    def report(self, record: Record) -> None:
        """Take note of `record`."""
        match record:
            case QueueStood():
                self.samples.append(record)
            case PodPreempting(victims=victims, at=at):
                self.ledger.preempted(victims, at)
        self.reporter.report(record)

    def outcome(self, batch: Batch | None, cluster: Cluster, now: Instant) -> JobsOutcome:
        """What came of it by `now`; the sessions were held by `batch` on `cluster`."""
        gangs = self.ledger.tally(now)
        if batch is None:
            return JobsOutcome(gangs=gangs)
        found = survey(batch.composition, cluster, now, EXPLAINED_MAX)
        return JobsOutcome(_newest(self.samples), found.waiting, tuple(self.samples), gangs)


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
