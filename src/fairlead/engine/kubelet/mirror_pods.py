"""MirrorPods: pods that come from their node's own files, as the API server sees them.

Who deletes one deletes its mirror image only: the kubelet makes it anew as soon as it is gone, or
as soon as the kubelet is back. Its copy has what Fairlead reads of a pod.

upstream: pkg/kubelet/kubelet.go:tryReconcileMirrorPods, pkg/kubelet/pod/mirror_client.go
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_static
from fairlead.engine.core.command import Command, CreateObject

_NOT_COPIED: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class MirrorPods:
    """Those that are missing, by node."""

    def __init__(self) -> None:
        """None is missing."""
        self._missing: dict[str, dict[str, Pod]] = {}

    def see(self, pod: Pod) -> None:
        """There is such a pod (again)."""
        self._missing.get(pod.spec.node_name, {}).pop(pod.key, None)

    def see_gone(self, pod: Pod, *, is_heard: bool) -> list[Command]:
        """Make `pod` anew if it is static, now if its kubelet is at work."""
        if not is_static(pod) or not pod.spec.node_name:
            return []
        if is_heard:
            return [_copy(pod)]
        self._missing.setdefault(pod.spec.node_name, {})[pod.key] = pod
        return []

    def welcome(self, node: str) -> list[Command]:
        """The kubelet of `node` is back."""
        return [_copy(pod) for pod in self._missing.pop(node, {}).values()]

    def forget_node(self, node: str) -> None:
        """Nobody comes back."""
        self._missing.pop(node, None)


def _copy(pod: Pod) -> CreateObject:
    manifest: dict[str, Any] = msgspec.to_builtins(pod)
    meta = {key: value for key, value in manifest["metadata"].items() if key not in _NOT_COPIED}
    return CreateObject(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": manifest["spec"]}
    )
