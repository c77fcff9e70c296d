"""Finalizers of pods that only programs outside Kubernetes remove."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.workloads.deletion.garbage_collector import FOREGROUND, ORPHAN
from fairlead.engine.workloads.job.progress import TRACKING

_REMOVED: Final = (FOREGROUND, ORPHAN, TRACKING)  # by the garbage collector and the Job controller


def foreign_finalizers(pod: Pod) -> tuple[str, ...]:
    """Return the finalizers of `pod` that no controller of Kubernetes removes.

    A pod with such a finalizer stays in the API, and on its node, after its containers have ended.
    """
    return tuple(one for one in pod.metadata.finalizers if one not in _REMOVED)
