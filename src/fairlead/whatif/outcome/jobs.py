"""JobsOutcome: the state of queues and gangs in a run, as values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.outcome.percentile import percentile_of_all

if TYPE_CHECKING:
    from fairlead.engine.batch.explanation.explanation import GroupExplanation


class GangWaits(Struct, frozen=True):
    """The times that the gangs of one queue waited until enough of their members ran.

    `waits` contains the waits of the gangs that started, ascending.
    """

    queue: str
    gangs: int
    waits: tuple[DurationNs, ...]

    def percentile(self, percent: int) -> DurationNs | None:
        """Return a percentile of the waits; None if the gang at this percentile still waits."""
        return percentile_of_all(self.waits, self.gangs, percent)


class IncompleteGang(Struct, frozen=True):
    """A gang with too few members: `ready` of them run or have succeeded; it needs `minimum`."""

    group: str
    title: str
    ready: int
    minimum: int


class GangTally(Struct, frozen=True):
    """Statistics of the gangs of a run.

    A gang does useful work only while at least `minMember` of its members run together. The fields
    `lost` and `incomplete` are keyed by resource, in amount x nanoseconds (CPU in millicores,
    memory in bytes).
    """

    gangs: int = 0
    finished: int = 0  # gangs of which every member succeeded, and all members ran at the same time
    # Gangs of which members were preempted; other members kept running, but too few.
    broken: int = 0
    # Resources that preempted members had used until their preemption.
    lost: dict[str, int] = field(default_factory=dict)
    # Resources that members held while too few members ran.
    incomplete: dict[str, int] = field(default_factory=dict)
    waits: tuple[GangWaits, ...] = ()  # sorted by queue
    # The gangs of which too few members run at the end, sorted by group.
    incomplete_now: tuple[IncompleteGang, ...] = ()
    # The time for which some members of each group ran, but too few.
    incomplete_for: Mapping[str, DurationNs] = field(default_factory=dict)


class CapacityChange(Struct, frozen=True):
    """The allocatable amounts of all nodes from the instant `at` on, by resource.

    CPU is in millicores, memory in bytes, other resources are in units.
    """

    at: Instant
    allocatable: Mapping[str, int]


class JobsOutcome(Struct, frozen=True):
    """Queues over time, and the pod groups that wait at the end.

    `queues` and `waiting` describe the end of the run. `waiting_count` is the number of all waiting
    pod groups; `waiting` may contain only some of them. `samples` and `capacity` are ordered by
    time.
    """

    queues: tuple[QueueAllocation, ...] = ()
    waiting: tuple[GroupExplanation, ...] = ()
    waiting_count: int = 0
    samples: tuple[QueueAllocation, ...] = ()
    capacity: tuple[CapacityChange, ...] = ()
    gangs: GangTally = field(default_factory=GangTally)

    @property
    def incomplete(self) -> tuple[IncompleteGang, ...]:
        """The gangs of which some members run at the end, but fewer than the minimum.

        A gang is a PodGroup of any scheduler, or a waiting group of the batch scheduler that has no
        PodGroup.
        """
        known = {one.group for one in self.gangs.incomplete_now}
        waiting = (
            IncompleteGang(one.group, one.title, one.ready, one.min_member)
            for one in self.waiting
            if 0 < one.ready < one.min_member and one.group not in known
        )
        return *self.gangs.incomplete_now, *waiting

    def queue(self, name: str) -> QueueAllocation | None:
        """Return the queue `name` at the end of the run; None if it never had a job."""
        return next((queue for queue in self.queues if queue.queue == name), None)

    def capacity_at(self, instant: Instant) -> Mapping[str, int]:
        """Return the allocatable amounts of all nodes at `instant`, by resource."""
        later = bisect_right(self.capacity, instant, key=lambda change: change.at)
        return self.capacity[later - 1].allocatable if later else {}


NO_JOBS: Final = JobsOutcome()


def contended_resource(outcome: JobsOutcome) -> str:
    """Return the resource with the highest ratio of requests to capacity during the run.

    Return "" if the queues request no resource of the nodes.
    """
    requested: dict[str, dict[str, int]] = {}
    highest: dict[str, float] = {}
    for sample in outcome.samples:
        requested[sample.queue] = dict(sample.request)
        offered = outcome.capacity_at(sample.at)
        for resource in sample.request:
            capacity = offered.get(resource, 0)
            total = sum(request.get(resource, 0) for request in requested.values())
            if capacity and total:
                highest[resource] = max(highest.get(resource, 0.0), total / capacity)
    return max(sorted(highest), key=highest.__getitem__, default="")
