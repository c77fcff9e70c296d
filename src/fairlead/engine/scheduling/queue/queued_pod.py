"""QueuedPod: a pod that waits to be scheduled, with the history that decides when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo


class QueueName(Enum):
    """Where a pod waits; IN_FLIGHT from its pop until its attempt is settled."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in_flight"
    GONE = "none"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """Written by `SchedulingQueue` only.

    `timestamp` is when the pod last came into the queue system (first arrival, or the end of its
    last attempt) and `stamp` orders arrivals of one instant. `plugins` rejected it last time;
    `gated_by` keeps it from being tried at all. `token` tells a heap entry that still counts from
    one that was left behind.
    """

    info: PodInfo
    timestamp: Instant
    stamp: int
    place: QueueName = QueueName.GONE
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    plugins: tuple[str, ...] = ()
    gated_by: str = ""
    window: Instant = 0
    token: int = 0

    @property
    def backoff_count(self) -> int:
        """What the backoff grows with: errors while the last attempts were errors."""
        return self.error_count or self.unschedulable_count
