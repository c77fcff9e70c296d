"""The report's section on queues and waiting groups, built from a JobsOutcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Required, TypedDict

from fairlead.engine.core.instant import Instant, seconds, to_seconds
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.outcome.jobs import JobsOutcome, contended_resource
from fairlead.whatif.outcome.run_outcome import RunOutcome

_HOUR: Final = seconds(3600)


class QueueLine(TypedDict):
    """One queue's shares of `QueueSection.resource` at each time in `QueueSection.t_s`, in percent.

    100 percent is the allocatable amount of all nodes at that time. `held` is the share that is
    allocated to the queue.
    """

    queue: str
    weight: int
    held: Sequence[float]
    deserved: Sequence[float]


class QueueSection(TypedDict, total=False):
    """The queues over virtual time; a value holds until the next sample.

    `resource` is the most contended resource, and `gangs` contains key figures of gangs.
    """

    resource: Required[str]
    t_s: Required[Sequence[float]]
    lines: Required[Sequence[QueueLine]]
    gangs: Mapping[str, float]


class WaitingGroupRow(TypedDict, total=False):
    """A PodGroup that still waits for resources when the run ends; `why` is the reason.

    `ready` is a text with the numbers of ready and needed pods. `starts_s` is the expected start in
    seconds of virtual time, None if unknown.
    """

    group: Required[str]
    queue: str
    ready: str
    why: str
    starts_s: float | None


def queue_section(outcome: RunOutcome) -> QueueSection | None:
    """Return the queues of `outcome`; None if jobs requested no resources."""
    jobs = outcome.jobs
    resource = contended_resource(jobs)
    if not resource:
        return None
    by_instant: dict[Instant, dict[str, QueueAllocation]] = defaultdict(dict)
    for sample in jobs.samples:
        by_instant[sample.at][sample.queue] = sample
    first = jobs.samples[0].at
    instants = sorted({*by_instant, *(one.at for one in jobs.capacity if one.at > first)})
    capacity = [jobs.capacity_at(instant).get(resource, 0) for instant in instants]
    samples = [by_instant.get(instant, {}) for instant in instants]
    start = outcome.started_at
    return {
        "resource": resource,
        "t_s": [round(to_seconds(instant - start), 3) for instant in instants],
        "lines": [_line(queue, resource, capacity, samples) for queue in jobs.queues],
        "gangs": _gangs(jobs, resource),
    }


def _line(
    queue: QueueAllocation,
    resource: str,
    capacity: Sequence[int],
    samples: Sequence[Mapping[str, QueueAllocation]],
) -> QueueLine:
    """Return the line of `queue`.

    `capacity` and `samples` have one element for each time in `QueueSection.t_s`.
    """
    held, deserved, found = list[float](), list[float](), None
    for whole, at in zip(capacity, samples, strict=True):
        found = at.get(queue.queue, found)
        held.append(_percent(found.allocated if found else {}, resource, whole))
        deserved.append(_percent(found.deserved if found else {}, resource, whole))
    return {"queue": queue.queue, "weight": queue.weight, "held": held, "deserved": deserved}


def _percent(amounts: Mapping[str, float], resource: str, capacity: int) -> float:
    return round(100 * amounts.get(resource, 0) / capacity, 2) if capacity else 0.0


def _gangs(jobs: JobsOutcome, resource: str) -> dict[str, float]:
    """Return key figures of gangs.

    `lost_hours` and `incomplete_hours` are in units of `resource` times hours, such as CPU hours.
    """
    found = jobs.gangs
    scale = 1000 if resource == "cpu" or resource.endswith("-milli") else 1
    return {
        "gangs": found.gangs,
        "finished": found.finished,
        "broken": found.broken,
        "lost_hours": round(found.lost.get(resource, 0) / scale / _HOUR, 3),
        "incomplete_hours": round(found.incomplete.get(resource, 0) / scale / _HOUR, 3),
    }


def waiting_group_rows(jobs: JobsOutcome, start: Instant) -> list[WaitingGroupRow]:
    """Return the waiting groups, earliest expected start first."""
    return [
        {
            "group": group.title,
            "queue": group.queue_name,
            "ready": f"{group.ready} of {group.min_member}",
            "why": group.summary or str(group.obstacle),
            "starts_s": None
            if group.starts_at is None
            else round(to_seconds(group.starts_at - start), 3),
        }
        for group in jobs.waiting
    ]
