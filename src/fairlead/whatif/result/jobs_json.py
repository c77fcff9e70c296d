"""Queues, waiting groups and gangs in the JSON of a result (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.json import Json
from fairlead.engine.core.instant import Instant, seconds, to_seconds
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.outcome.deserved_amount import deserved_amounts
from fairlead.whatif.outcome.jobs import GangWaits, JobsOutcome

if TYPE_CHECKING:
    from fairlead.engine.batch.explanation.explanation import GroupExplanation

_HOUR: Final = seconds(3600)


def queues(jobs: JobsOutcome) -> list[Json]:
    """Return the state of each queue at the end of the run, in the order of `jobs.queues`."""
    return [_queue(queue) for queue in jobs.queues]


def queues_of_both(without: JobsOutcome, changed: JobsOutcome) -> list[Json]:
    """Return a row for each queue, with its values in the run with the change.

    The field `without` contains the queue's values in the run without the change.
    """
    names = sorted({queue.queue for queue in (*without.queues, *changed.queues)})
    rows: list[Json] = []
    for name in names:
        before, after = without.queue(name), changed.queue(name)
        row: dict[str, Any] = {"queue": name} if after is None else _queue(after)
        rows.append({**row, "without": None if before is None else _queue(before)})
    return rows


def _queue(queue: QueueAllocation) -> Json:
    return {
        "queue": queue.queue,
        "weight": queue.weight,
        "deserved": deserved_amounts(queue.deserved),
        "allocated": dict(queue.allocated),
        "requested": dict(queue.request),
        "share": round(queue.share, 6),
    }


def waiting_groups(jobs: JobsOutcome, start: Instant) -> list[Json]:
    """Return the groups that wait at the end, earliest expected start first."""
    return [_group(group, start) for group in jobs.waiting]


def _group(group: GroupExplanation, start: Instant) -> Json:
    begins = group.starts_at
    return {
        "group": group.title,
        "queue": group.queue_name,
        "obstacle": group.obstacle.name,
        "why": group.summary or str(group.obstacle),
        "min_member": group.min_member,
        "members": group.members,
        "ready": group.ready,
        "placeable": group.placeable,
        "starts_at_s": None if begins is None else round(to_seconds(begins - start), 3),
        "remedies": list(group.remedies),
    }


def gangs(jobs: JobsOutcome) -> Json | None:
    """Return the key figures of gangs; None if there were no gangs."""
    found = jobs.gangs
    if not found.gangs:
        return None
    return {
        "gangs": found.gangs,
        "finished": found.finished,
        "broken": found.broken,
        "lost_hours": _hours(found.lost),
        "incomplete_hours": _hours(found.incomplete),
        "waits": [_waits(one) for one in found.waits],
    }


def _waits(one: GangWaits) -> Json:
    """Return how long the gangs of a queue waited.

    A percentile is null if the gang at this percentile still waits.
    """
    median, longest = one.percentile(50), one.percentile(90)
    return {
        "queue": one.queue,
        "gangs": one.gangs,
        "started": len(one.waits),
        "median_s": None if median is None else round(to_seconds(median), 3),
        "p90_s": None if longest is None else round(to_seconds(longest), 3),
    }


def _hours(amounts: Mapping[str, int]) -> dict[str, float]:
    return {name: round(amount / _HOUR, 3) for name, amount in amounts.items()}
