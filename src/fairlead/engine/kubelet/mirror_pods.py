"""MirrorPods: creates the mirror pods of static pods again when they are deleted.

A static pod is defined in a file on its node. Its API object is called the mirror pod. If a client
deletes the mirror pod, the static pod goes on running. The kubelet creates the mirror pod again. If
the kubelet is down at that time, it creates the mirror pod when it is back.

The removal of the old mirror pod takes time (`pod_lifecycle.MIRROR_REMOVAL`). If the removal took
no time, a scheduler could preempt one new mirror pod after another at the same instant, without
end. The new mirror pod tolerates all NoExecute taints. Otherwise, a taint could evict one new
mirror pod after another.

upstream: pkg/kubelet/kubelet.go:tryReconcileMirrorPods, pkg/kubelet/pod/mirror_client.go,
pkg/kubelet/config/common.go:applyDefaults
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.api.objects import Pod, Toleration
from fairlead.api.pods.facts import is_static
from fairlead.engine.core.command import Command, CreateObject, create_again

_NO_EVICTION: Final = Toleration(operator="Exists", effect=NO_EXECUTE)


class MirrorPods:
    """The deleted mirror pods of each node; the node's kubelet restores them when it resumes."""

    def __init__(self) -> None:
        self._missing: dict[str, dict[str, Pod]] = {}

    def observe(self, pod: Pod) -> None:
        """Record that `pod` exists and need not be created again."""
        missing = self._missing.get(pod.spec.node_name)
        if missing is not None:
            missing.pop(pod.key, None)

    def observe_deleted(self, pod: Pod, *, is_reporting: bool) -> list[Command]:
        """Return the command that creates the deleted `pod` again, if it is a static pod.

        If `is_reporting` is False, returns []; `kubelet_resumed` returns the command later.
        """
        if not is_static(pod) or not pod.spec.node_name:
            return []
        if is_reporting:
            return [_mirror(pod)]
        self._missing.setdefault(pod.spec.node_name, {})[pod.key] = pod
        return []

    def kubelet_resumed(self, node: str) -> list[Command]:
        """Return commands that restore the pods deleted while the kubelet was down."""
        return [_mirror(pod) for pod in self._missing.pop(node, {}).values()]

    def forget_node(self, node: str) -> None:
        """Forget the mirror pods that were to be restored on the deleted node `node`."""
        self._missing.pop(node, None)


def _mirror(pod: Pod) -> CreateObject:
    if _NO_EVICTION in pod.spec.tolerations:
        return create_again(pod)
    spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, _NO_EVICTION))
    return create_again(replace(pod, spec=spec))
