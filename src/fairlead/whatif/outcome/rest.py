"""Rest: whether the dumped cluster was at rest, and the activity in progress if it was not.

A cluster is at rest if no pod of its workloads has started, moved or ended for some time. Pods of
Jobs are ignored. A run waits until the cluster is at rest, and then makes the change. Otherwise, a
rollout that was already in progress would look like an effect of the change.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome.workload import WorkloadRef


class WorkloadActivity(Struct, frozen=True, kw_only=True):
    """How many pods of a workload were created, deleted and started before the cluster was at rest.

    `is_rollout` means that pods of a new template revision replaced pods of an old revision.
    """

    workload: WorkloadRef
    created: int
    deleted: int
    started: int
    is_rollout: bool

    @property
    def words(self) -> str:
        """The activity as a short phrase, such as `rollout, 3 pods created, 2 deleted`."""
        parts = [
            "rollout" if self.is_rollout else "",
            _counted(self.created, "created"),
            _counted(self.deleted, "deleted"),
            "" if self.created else _counted(self.started, "started"),
        ]
        return ", ".join(part for part in parts if part) or "pods placed"


def _counted(count: int, what: str) -> str:
    return f"{counted(count, 'pod')} {what}" if count else ""


class Rest(Struct, frozen=True, kw_only=True):
    """How long the cluster took to come to rest, and the activity until then.

    `after` is the time from the start of the run until the cluster was at rest. `after` is 0 if the
    cluster was at rest from the start, None if the cluster did not come to rest within the horizon.
    """

    after: DurationNs | None = 0
    activities: tuple[WorkloadActivity, ...] = ()


AT_REST: Final = Rest()
