"""PrioritySort: higher priority first, then earlier queue time (plugins/queuesort)."""

from __future__ import annotations

from fairlead.engine.state.pod_info import PodInfo


class PrioritySort:
    """QueueSort."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Smaller keys come first."""
        return (-pod.priority, timestamp)
