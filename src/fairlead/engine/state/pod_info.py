"""PodInfo: a pod as the scheduler uses it, with frequently used values computed once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.shape import Shape

# A pod without startTime counts as started now, so later than any recorded start
# (pkg/scheduler/util/utils.go: GetPodStartTime).
NEVER_STARTED: Final[Instant] = 1 << 62


class PodInfo:
    """One version of a pod; read-only.

    `pod` is the Kubernetes object, and `key` is its `namespace/name`. `id` is the pod's uid. For a
    pod without a uid, `id` is the pod's key. `ref` is the pod's identity, for commands. `start` is
    the time at which the pod started. `terminating` is True if the pod's deletion was requested.
    """

    __slots__ = (
        "_ref",
        "equivalence_key",
        "id",
        "key",
        "labels",
        "pod_class",
        "namespace",
        "pod",
        "priority",
        "shape",
        "start",
        "terminating",
        "uid",
    )

    def __init__(self, pod: Pod, shape: Shape, key: str = "") -> None:
        """Store `pod` and compute the other fields; `shape` is the Shape of the pod's spec.

        Pass the pod's `key` if it is known, so that all versions of the pod share one string.
        """
        meta = pod.metadata
        self.pod = pod
        self.shape = shape
        self.namespace = meta.namespace
        self.key = key or f"{meta.namespace}/{meta.name}"
        self.uid = meta.uid
        self.id = meta.uid or self.key
        self.labels = meta.labels
        self.pod_class: PodClass | None = None  # interned by `PodIndex` on first use
        self.equivalence_key: Hashable = None  # set by the function `equivalence_key` on first use
        self.priority = pod.spec.priority or 0  # as `pod_priority`, without the call
        self.terminating = meta.deletion_timestamp != ""
        start = pod.status.start_time
        self.start: Instant = parse_timestamp(start) if start else NEVER_STARTED
        self._ref: ObjectRef | None = None  # several commands and records of a cycle share it

    @property
    def ref(self) -> ObjectRef:
        """The pod's identity, for commands and events."""
        if self._ref is None:
            meta = self.pod.metadata
            self._ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
        return self._ref

    def __repr__(self) -> str:
        """Return a short text for the messages of failing tests."""
        return f"PodInfo({self.key})"
