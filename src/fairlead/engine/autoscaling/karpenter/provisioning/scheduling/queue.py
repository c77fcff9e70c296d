"""The queue of a pass: largest pods first, until a full round has made no progress.

upstream: pkg/controllers/provisioning/scheduling/queue.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod


class PendingPodQueue:
    """Pods in order; a pod that is pushed back is retried while others make progress."""

    def __init__(self, pods: Iterable[PendingPod]) -> None:
        """Sort by cpu, then memory, descending; then by age, oldest first, then by uid."""
        self.ordered = sorted(pods, key=queue_order)
        self._pods = deque(self.ordered)
        self._length_when_pushed: dict[str, int] = {}

    def pop(self) -> PendingPod | None:
        """Return the next pod; None if there is none, or no pod was placed since it was pushed."""
        if not self._pods:
            return None
        pod = self._pods[0]
        if self._length_when_pushed.get(pod.key) == len(self._pods):
            return None
        return self._pods.popleft()

    def push(self, pod: PendingPod) -> None:
        """Add a pod that could not be placed."""
        self._pods.append(pod)
        self._length_when_pushed[pod.key] = len(self._pods)


def queue_order(pod: PendingPod) -> tuple[int, int, int, str]:
    """Return the sort key of a pod in the queue."""
    requests = pod.facts.requests
    created = pod.pod.metadata.creation_timestamp
    return (
        -requests.get("cpu", 0),
        -requests.get("memory", 0),
        parse_timestamp(created) if created else 0,
        pod.pod.metadata.uid,
    )
