"""QueuedPod: a pod in the scheduling queue, with its attempts and backoff."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo


class QueueName(Enum):
    """The queue that a pod is in.

    IN_FLIGHT means that the pod was popped and its attempt has not ended. GONE means that the pod
    is neither in a queue nor in flight.
    """

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in_flight"
    GONE = "none"


class QueuedPod(Struct, eq=False):
    """A pod in the scheduling queue; only `SchedulingQueue` changes it."""

    info: PodInfo
    # The time at which the pod last entered the queue: its arrival, or the end of its last attempt.
    timestamp: Instant
    stamp: int  # orders pods that entered at the same time
    place: QueueName = QueueName.GONE
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    # The plugins that rejected the pod in its last attempt, and the PreEnqueue plugins that have
    # rejected it since then.
    plugins: tuple[str, ...] = ()
    gated_by: str = ""  # the PreEnqueue plugin that rejects the pod now, or ""
    # The time at which the pod's backoff ends, as `BackoffClock` truncates it; 0 if there is no
    # backoff.
    window: Instant = 0
    first_active: Instant | None = None  # when the pod first entered the active queue
    activations: int = 0  # the number of the pod's activations at exactly `activated_at`
    activated_at: Instant = 0  # the time of the pod's last activation
    token: int = 0  # an entry of an `EntryQueue` is valid only if it has this token
    # (version, number): a version of the pod, and the number of the equivalence class of this
    # version. The pair is valid only while `info` is this version.
    equivalence_class: tuple[PodInfo, int] | None = None

    def gate(self, plugin: str) -> None:
        """Record which PreEnqueue plugin rejects the pod; `plugin` is "" if no plugin rejects it.

        upstream: scheduling_queue.go: runPreEnqueuePlugin
        """
        self.gated_by = plugin
        if plugin and plugin not in self.plugins:
            self.plugins = (*self.plugins, plugin)

    @property
    def backoff_count(self) -> int:
        """The count that determines the backoff.

        After an error, the count is the number of errors since the last rejection. After a
        rejection, the count is the number of all rejections.
        """
        return self.error_count or self.unschedulable_count
