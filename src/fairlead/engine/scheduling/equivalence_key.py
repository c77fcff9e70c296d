"""equivalence_key: returns a key that is equal for pods that the scheduler treats equally."""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.api.pods.facts import controller_of
from fairlead.engine.state.pod_info import PodInfo


def equivalence_key(pod: PodInfo) -> Hashable:
    """Return a key of the data of a pod that most plugins read.

    Pods with equal keys may differ in claims, in status, and in metadata other than namespace,
    labels, controller and deletion: for example in names and annotations. A plugin that reads none
    of these data gives all pods with equal keys the same answer, as long as the cluster does not
    change.
    """
    meta = pod.pod.metadata
    return (
        pod.shape.id,
        pod.priority,
        pod.pod.spec.preemption_policy,
        pod.namespace,
        frozenset(pod.labels.items()),
        controller_of(meta) if meta.owner_references else None,
        pod.terminating,
    )
