"""Likeness: which pods the scheduler treats alike, so that what it finds for one holds for all."""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.api.pods.facts import controller_of
from fairlead.engine.state.pod_info import PodInfo


def likeness(pod: PodInfo) -> Hashable:
    """Return a key that is equal for pods that differ at most in name, claims and status.

    Plugins that read none of these give equal answers about such pods in one state.
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
