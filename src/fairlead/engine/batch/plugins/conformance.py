"""conformance: protects critical pods from eviction.

A pod is critical if it is in the namespace kube-system or has a system priority class.

upstream: pkg/scheduler/plugins/conformance/conformance.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.engine.batch.info.job import TaskInfo

_CRITICAL_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
_SYSTEM_NAMESPACE: Final = "kube-system"


class Conformance:
    """Protects critical pods from eviction."""

    name = "conformance"

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that are not critical."""
        return [task for task in candidates if not _is_critical(task)]

    def reclaimable(
        self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that are not critical."""
        return self.preemptable(reclaimer, candidates)


def _is_critical(task: TaskInfo) -> bool:
    info = task.info
    return (
        info.pod.spec.priority_class_name in _CRITICAL_CLASSES
        or info.namespace == _SYSTEM_NAMESPACE
    )
