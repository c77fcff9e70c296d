"""The identity of a pod, for commands and events."""

from __future__ import annotations

from fairlead.api.objects import Pod
from fairlead.engine.core.command import ObjectRef


def pod_ref(pod: Pod) -> ObjectRef:
    """The identity of `pod`."""
    meta = pod.metadata
    return ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
