"""QueueUsage: the deserved, allocated and requested resources of each queue."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.batch.plugins.proportion import Proportion, QueueShare
from fairlead.engine.batch.session.session import Session


class QueueUsage(Struct, frozen=True):
    """One queue's amounts by resource: cpu in millicores, memory in bytes, others in units.

    `request` is the allocated amounts of the queue's jobs plus the requests of their pending tasks.
    `allocated` includes the queues below this queue. `share` is the ratio allocated ÷ deserved of
    the resource for which this ratio is largest.
    """

    name: str
    weight: int
    deserved: Mapping[str, float]
    allocated: Mapping[str, int]
    request: Mapping[str, int]
    share: float
    is_overused: bool


def queue_usages(session: Session) -> list[QueueUsage]:
    """Return the usage of the queues among which the plugin `proportion` divides the cluster.

    The plugin divides the cluster among the queues that have jobs or a guarantee, and their
    ancestors. The result is sorted by name. Returns [] if the configuration does not have the
    plugin.
    """
    plugin = proportion_of(session)
    if plugin is None:
        return []
    return [queue_usage(session, plugin, plugin.shares[name]) for name in sorted(plugin.shares)]


def proportion_of(session: Session) -> Proportion | None:
    """Return the plugin `proportion`, or None if the configuration does not have it."""
    return next((p for p in session.tiers.plugins if isinstance(p, Proportion)), None)


def queue_usage(session: Session, plugin: Proportion, share: QueueShare) -> QueueUsage:
    """Return the usage of `share.queue`; `plugin` has computed the amounts in `share`."""
    names = session.table.resources.names
    columns = sorted({*share.deserved, *share.request})
    return QueueUsage(
        name=share.queue.name,
        weight=share.queue.weight,
        deserved={names[c]: share.deserved.get(c, 0.0) for c in columns},
        allocated={names[c]: share.allocated_of(c) for c in columns},
        request={names[c]: share.request.get(c, 0) for c in columns},
        share=share.share,
        is_overused=plugin.overused(share.queue),
    )


def without_jobs(before: QueueUsage) -> QueueUsage:
    """Return the usage of a queue that had the usage `before` and has no jobs now."""
    return replace(
        before,
        deserved=dict.fromkeys(before.deserved, 0.0),
        allocated=dict.fromkeys(before.allocated, 0),
        request=dict.fromkeys(before.request, 0),
        share=0.0,
        is_overused=False,
    )
