"""StuckPods: the terminating pods of a dump that their kubelets cannot stop.

A kubelet kills the containers of a pod at the end of the grace period, and then removes the pod. A
pod is stuck if it still exists ten minutes later, although its node is Ready and no custom
finalizer keeps it. For example, a process waits for a network file system, or a volume cannot be
unmounted. A dump does not show when the kubelet will succeed, so the pod is assumed to stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.nodes.readiness import TRUE, ready_status
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import foreign_finalizers, is_static, is_terminal, is_terminating
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_lifecycle.starting_node import nodes_of
from fairlead.whatif.snapshot.samples import matching_pods

_PATIENCE: Final = seconds(600)


class StuckPods(Struct, frozen=True):
    """The pods that do not stop, each with its deletionTimestamp.

    The object is used as `KubeletConfig.never_stops` (`in_config`), which kubelets call like a
    function.
    """

    deleted_at: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, pod: Pod) -> bool:
        """Return whether `pod` is one of the stuck pods, and not a later pod of the same name."""
        return self.deleted_at.get(pod.key) == pod.metadata.deletion_timestamp

    def in_config(self, config: KubeletConfig) -> KubeletConfig:
        """Return `config` with these pods as `never_stops`; `config` itself if there are none."""
        return replace(config, never_stops=self) if self.deleted_at else config

    @property
    def notes(self) -> tuple[str, ...]:
        """A note that the stuck pods are assumed to stay; () if no pods are stuck."""
        if not self.deleted_at:
            return ()
        count = len(self.deleted_at)
        have, they = ("pod has", "it does") if count == 1 else ("pods have", "they do")
        what = f"{count:,} {have} not stopped long after the end of the grace period"
        which = listed(list(self.deleted_at))
        return (f"{what} ({which}); the answer assumes that {they} not stop.",)


def is_stuck(pod: Pod, node: Node | None, at: Instant) -> bool:
    """Return whether `pod` still runs on `node` at `at`, long after the end of its grace period.

    Return False if `node` is not Ready or is None (unknown), or if a finalizer keeps the pod.
    Also return False if the deletionTimestamp is malformed.
    """
    if not is_terminating(pod) or is_terminal(pod) or is_static(pod) or foreign_finalizers(pod):
        return False
    if node is None or ready_status(node) != TRUE:
        return False
    try:
        return parse_timestamp(pod.metadata.deletion_timestamp) + _PATIENCE < at
    except ValueError:
        return False  # a malformed timestamp is refused when the object is loaded


def stuck_words(pod: Pod) -> str:
    """Return words that say why the stuck `pod` still exists.

    The words have no subject, because several pods can share them.
    """
    return f"not stopped, although the grace period ended at {pod.metadata.deletion_timestamp}"


def stuck_pods(manifests: Iterable[Manifest], at: Instant) -> StuckPods:
    """Return the pods among `manifests` that are stuck at `at`, the time of the dump."""
    leaving = [one.pod for one in matching_pods(manifests, is_terminating)]
    if not leaving:
        return StuckPods()
    nodes = {one.ref.name: one.node for one in nodes_of(manifests)}
    found = (pod for pod in leaving if is_stuck(pod, nodes.get(pod.spec.node_name), at))
    return StuckPods({pod.key: pod.metadata.deletion_timestamp for pod in found})
