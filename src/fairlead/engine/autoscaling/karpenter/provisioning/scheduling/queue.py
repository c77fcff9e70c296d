"""The pod queue of a provisioning pass. The largest pod comes first; the queue ends if no pod fits.

upstream: pkg/controllers/provisioning/scheduling/queue.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod


class PendingPodQueue:
    """The pods of a pass, in order."""

    def __init__(self, pods: Iterable[PendingPod]) -> None:
        """Sort `pods` by cpu and memory (largest first), then by age (oldest first) and uid."""
        self.ordered = sorted(pods, key=queue_order)
        self._pods = deque(self.ordered)
        self._length_when_pushed: dict[str, int] = {}

    def pop(self) -> PendingPod | None:
        """Return the next pod.

        Returns None if the queue is empty. Also returns None if the first pod was put back with
        `push`, and no pod has been placed since.
        """
        if not self._pods:
            return None
        pod = self._pods[0]
        if self._length_when_pushed.get(pod.key) == len(self._pods):
            return None
        return self._pods.popleft()

    def push(self, pod: PendingPod) -> None:
        """Append `pod`, which could not be placed, to the queue."""
        self._pods.append(pod)
        self._length_when_pushed[pod.key] = len(self._pods)


def queue_order(pod: PendingPod) -> tuple[int, int, int, str]:
    """Return the sort key of a pod: most cpu first, then most memory, then oldest, then by uid."""
    requests = pod.facts.requests
    created = pod.pod.metadata.creation_timestamp
    return (
        -requests.get("cpu", 0),
        -requests.get("memory", 0),
        parse_timestamp(created) if created else 0,
        pod.pod.metadata.uid,
    )
