"""PodList: selects the pending pods for which scale-up adds nodes.

upstream: core/podlistprocessor/, core/static_autoscaler.go: filterOutYoungPods, allPodsAreNew
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import parse_duration
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    GPU_RESOURCES,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    ANNOTATION_PREFIX,
    created_at,
    is_daemon_set_pod,
    is_expendable,
    is_recreatable,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.hinting_simulator import (
    HintingSimulator,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.state.pod_info import PodInfo

_SCALE_UP_DELAY: Final = f"{ANNOTATION_PREFIX}pod-scale-up-delay"
_NEW_FOR: Final = seconds(2)
_NEW_WITH_GPU_FOR: Final = seconds(30)


class PodList:
    """Selects the pods that need new nodes. Keeps placement hints from loop to loop."""

    def __init__(self, context: AutoscalingContext) -> None:
        self._context = context
        self._simulator = HintingSimulator(context.snapshot)

    def process(self, pods: Sequence[Pod], drained: Iterable[str]) -> list[PodInfo]:
        """Return the pods that need a new node, by descending priority.

        `pods` are the pending pods. Pods that will be evicted from the `drained` nodes are treated
        like pending pods. Expendable pods and DaemonSet pods are not returned. Pods that fit a node
        of the snapshot are placed on it for the rest of the loop.
        """
        snapshot = self._context.snapshot
        cutoff = self._context.options.expendable_pods_priority_cutoff
        kept = [pod for pod in pods if not is_expendable(pod, cutoff)]
        kept += self._pods_of(drained)
        kept.sort(key=lambda pod: -(pod.spec.priority or 0))
        infos = [snapshot.pod_info(pod) for pod in kept]
        placed = {id(pod) for pod in self._simulator.try_schedule(infos)}
        self._simulator.drop_old_hints()
        left = (pod for pod in infos if id(pod) not in placed)
        return [pod for pod in left if not is_daemon_set_pod(pod.pod)]

    def _pods_of(self, nodes: Iterable[str]) -> list[Pod]:
        """Return an unbound copy of each recreatable pod on `nodes`, except terminating pods.

        upstream: podlistprocessor/currently_drained_nodes.go
        """
        snapshot = self._context.snapshot
        infos = (snapshot.node(name) for name in nodes)
        pods = (pod.pod for info in infos if info is not None for pod in snapshot.pods_on(info))
        return [
            replace(pod, spec=replace(pod.spec, node_name=""))
            for pod in pods
            if is_recreatable(pod) and not is_terminating(pod)
        ]


def without_young(pods: Iterable[PodInfo], delay: DurationNs, now: Instant) -> list[PodInfo]:
    """Return the pods that are old enough for scale-up (see `scale_up_delay`)."""
    return [pod for pod in pods if now - created_at(pod.pod) > scale_up_delay(pod.pod, delay)]


def scale_up_delay(pod: Pod, delay: DurationNs) -> DurationNs:
    """Return the age that `pod` must exceed before scale-up considers it.

    The result is `delay`, or the delay in the pod's annotation if that is longer.
    """
    stated = pod.metadata.annotations.get(_SCALE_UP_DELAY)
    if stated is None:
        return delay
    try:
        return max(parse_duration(stated), delay)
    except ValueError:
        return delay


def are_all_new(pods: Sequence[PodInfo], now: Instant) -> bool:
    """Return whether more pods are probably about to arrive, so that scale-up should wait.

    The result is True if all pods are less than 2 s old. The result is also True if some pods
    request a GPU, and all pods that request a GPU are less than 30 s old.
    """
    if min(created_at(pod.pod) for pod in pods) + _NEW_FOR > now:
        return True
    with_gpu = [created_at(pod.pod) for pod in pods if _wants_gpu(pod.pod)]
    return bool(with_gpu) and min(with_gpu) + _NEW_WITH_GPU_FOR > now


def _wants_gpu(pod: Pod) -> bool:
    # upstream: utils/gpu/gpu.go: PodRequestsGpu
    return any(
        name in container.resources.requests
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in GPU_RESOURCES
    )
