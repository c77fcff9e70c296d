"""QueuedPod: a pod in the scheduling queue, with its attempts and backoff."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo


class QueueName(Enum):
    """The queue that holds a pod; IN_FLIGHT from its pop until its attempt ends."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in_flight"
    GONE = "none"


class QueuedPod(Struct, eq=False):
    """A pod in the scheduling queue; only `SchedulingQueue` writes it.

    `timestamp` is when the pod last entered the queue (first arrival, or the end of its last
    attempt) and `stamp` orders pods that entered at the same instant. `plugins` rejected it in its
    last attempt; `gated_by` is the PreEnqueue plugin that holds it back. `activations` counts how
    often it was activated at the instant `activated_at`. `token` marks the heap entry that is
    valid; entries with another token are stale.
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
    activations: int = 0
    activated_at: Instant = 0
    token: int = 0

    @property
    def backoff_count(self) -> int:
        """The exponent of the backoff: consecutive errors after an error, else rejections."""
        return self.error_count or self.unschedulable_count
