"""equivalence_key: returns a key that is equal for pods that the scheduler treats equally."""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.api.pods.facts import controller_of
from fairlead.engine.state.pod_info import PodInfo


def equivalence_key(pod: PodInfo) -> Hashable:
    """Return a key that contains the data of `pod` that most plugins read.

    The key contains neither the pod's status nor the names of its PersistentVolumeClaims. The key
    also leaves out the pod's name, annotations and most other metadata. A plugin that reads only
    data in the key gives all pods with equal keys the same answer. The answer stays the same as
    long as the cluster does not change.
    """
    if pod.equivalence_key is None:  # a PodInfo is read-only, so its key stays the same
        meta = pod.pod.metadata
        pod.equivalence_key = (
            pod.shape.id,
            pod.priority,
            pod.pod.spec.preemption_policy,
            pod.namespace,
            frozenset(pod.labels.items()),
            controller_of(meta) if meta.owner_references else None,
            pod.terminating,
        )
    return pod.equivalence_key
