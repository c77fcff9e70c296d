"""QueueInfo: a queue's weight, limits, guarantees and parent.

kube-batch reads only `weight`. The fields `guarantee`, `deserved`, `capability`, `reclaimable`,
`parent` and `priority` are Volcano's. Amounts are by resource column; cpu is in millicores.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.objects import Queue, ResourceList
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.task_status import ZERO_TIME
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.resource_columns import PODS, ResourceColumns, allocatable_amount
from fairlead.engine.state.shape import Amounts

DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"


class QueueInfo(Struct, frozen=True, eq=False):
    """One version of a queue.

    A resource that is missing from `capability` is unlimited. A resource that is missing from
    `guarantee` or `deserved` has the amount 0. `parent` is "" if the queue is a child of the root.
    """

    name: str
    weight: int = 1
    capability: Amounts = ()
    deserved: Amounts = ()
    guarantee: Amounts = ()
    reclaimable: bool = True
    parent: str = ""
    priority: int = 0
    created: Instant = ZERO_TIME
    is_open: bool = True

    @property
    def order(self) -> tuple[Instant, str]:
        """Sort key that orders queues if all other criteria are equal: (creation time, name)."""
        return self.created, self.name


def queue_info(queue: Queue, columns: ResourceColumns) -> QueueInfo:
    """Convert `queue`, of any API, to a QueueInfo; the resource `pods` is left out.

    Raises QuantityError if an amount is invalid.
    """
    meta, spec = queue.metadata, queue.spec
    created = meta.creation_timestamp
    return QueueInfo(
        name=meta.name,
        weight=1 if spec.weight is None else spec.weight,
        capability=_amounts(spec.capability, columns),
        deserved=_amounts(spec.deserved, columns),
        guarantee=_amounts(spec.guarantee.resource, columns),
        reclaimable=spec.reclaimable is not False,
        parent="" if spec.parent == ROOT_QUEUE else spec.parent,
        priority=spec.priority,
        created=parse_timestamp(created) if created else ZERO_TIME,
        is_open=queue.status.state in ("", "Open"),
    )


def _amounts(resources: ResourceList, columns: ResourceColumns) -> Amounts:
    amounts = (
        (columns.column(name), allocatable_amount(name, resources))
        for name in resources
        if name != PODS
    )
    return tuple(sorted(amounts))
