"""DefaultBinder: binds through the pod's binding subresource (plugins/defaultbinder)."""

from __future__ import annotations

from fairlead.engine.core.command import Bind
from fairlead.engine.state.pod_info import PodInfo


class DefaultBinder:
    """Binds a pod with POST pods/binding (extension point Bind)."""

    name = "DefaultBinder"

    def bind(self, pod: PodInfo, node: str) -> Bind:
        """Return the command that binds `pod` to `node`."""
        return Bind(pod.ref, node)
