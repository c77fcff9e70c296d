"""PrioritySort: higher priority first, then earlier queue time (plugins/queuesort)."""

from __future__ import annotations

from fairlead.engine.state.pod_info import PodInfo


class PrioritySort:
    """Orders the queue by priority, then by the time of queueing (QueueSort)."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Return the sort key of `pod` in the queue; the pod with the smallest key comes first.

        `timestamp` is the time at which the pod was queued.
        """
        return (-pod.priority, timestamp)
