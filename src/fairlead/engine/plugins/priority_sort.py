"""PrioritySort: higher priority first, then earlier queue time (plugins/queuesort)."""

from __future__ import annotations

from fairlead.engine.state.pod_info import PodInfo


class PrioritySort:
    """Orders the queue by priority, then by the time of queueing (QueueSort)."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Return the key by which the queue is ordered, the smallest first."""
        return (-pod.priority, timestamp)
