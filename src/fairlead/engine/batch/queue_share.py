"""Where each queue stands: what it deserves, what it has, what it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fairlead.engine.batch.plugins.proportion import Proportion, QueueShare
from fairlead.engine.batch.session.session import Session


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """One queue's part of the cluster, by resource: cpu in milli, memory in bytes, else units.

    `request` is what its jobs hold and wait for, `share` the largest allocated ÷ deserved.
    """

    name: str
    weight: int
    deserved: Mapping[str, float]
    allocated: Mapping[str, int]
    request: Mapping[str, int]
    share: float
    is_overused: bool


def standings(session: Session) -> list[QueueStanding]:
    """The queues that have jobs, or a right without, by name; none without proportion."""
    plugin = proportion_of(session)
    if plugin is None:
        return []
    return [standing(session, plugin, plugin.shares[name]) for name in sorted(plugin.shares)]


def proportion_of(session: Session) -> Proportion | None:
    """The plugin that divides the cluster, if the configuration has it."""
    return next((p for p in session.tiers.plugins if isinstance(p, Proportion)), None)


def standing(session: Session, plugin: Proportion, found: QueueShare) -> QueueStanding:
    """What `plugin` knows of one queue."""
    names = session.table.resources.names
    columns = sorted({*found.deserved, *found.request})
    return QueueStanding(
        name=found.queue.name,
        weight=found.queue.weight,
        deserved={names[c]: found.deserved.get(c, 0.0) for c in columns},
        allocated={names[c]: found.allocated_of(c) for c in columns},
        request={names[c]: found.request.get(c, 0) for c in columns},
        share=found.share,
        is_overused=plugin.is_overused(found.queue),
    )


def without_jobs(before: QueueStanding) -> QueueStanding:
    """How a queue stands that had jobs and has none any more."""
    return replace(
        before,
        deserved=dict.fromkeys(before.deserved, 0.0),
        allocated=dict.fromkeys(before.allocated, 0),
        request=dict.fromkeys(before.request, 0),
        share=0.0,
        is_overused=False,
    )
