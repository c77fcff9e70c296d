"""PrioritySort: higher priority first, then whoever entered the queue first (plugins/queuesort)."""

from __future__ import annotations

from fairlead.engine.state.pod_info import PodInfo


class PrioritySort:
    """QueueSort."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Smaller is served first."""
        return (-pod.priority, timestamp)
