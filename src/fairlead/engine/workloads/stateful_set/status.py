"""Computes the status of a StatefulSet.

upstream: pkg/controller/statefulset/stateful_set_control.go:updateStatus
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.api.json import Json
from fairlead.api.objects import Pod, StatefulSet
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.pod_control.controller_history import History
from fairlead.engine.workloads.pod_control.pod_set import ready_since


def stateful_status(
    owner: StatefulSet, pods: Collection[Pod], history: History, now: Instant
) -> Json:
    """Return the status of `owner`, computed from its `pods`."""
    running = [pod for pod in pods if pod.status.phase == "Running"]
    since = [one for pod in running if (one := ready_since(pod)) is not None]
    staying = [pod for pod in pods if not is_terminating(pod)]
    revisions = [history.revision_of(pod) for pod in staying]
    numbers = {
        "observedGeneration": owner.metadata.generation,
        "readyReplicas": len(since),
        "currentReplicas": revisions.count(history.current),
        "updatedReplicas": revisions.count(history.update),
    }
    min_ready = seconds(owner.spec.min_ready_seconds)
    status: Json = {"replicas": len(pods)}
    status |= {key: number for key, number in numbers.items() if number}
    return status | {
        "availableReplicas": sum(one + min_ready <= now for one in since),
        "currentRevision": history.current,
        "updateRevision": history.update,
        "collisionCount": history.collisions,
    }
