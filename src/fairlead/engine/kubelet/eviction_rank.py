"""The order in which a kubelet evicts pods under node pressure, and the eviction message.

    1 pods that use more than they request
    2 pods of lower priority
    3 pods further beyond their request
    pods within their requests come last; for process ids, which cannot be requested: 2, then usage

upstream: pkg/kubelet/eviction/helpers.go:rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure,
evictionMessage; pkg/kubelet/types/pod_update.go:IsCriticalPod
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_static, pod_priority
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import Format, canonical, parse_quantity
from fairlead.engine.kubelet.shortage import Shortage
from fairlead.engine.kubelet.usage import usage_of

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000


def ranked(pods: Iterable[Pod], resource: str) -> list[Pod]:
    """`pods` in eviction order; ties by namespace and name."""
    return sorted(pods, key=lambda pod: _rank(pod, resource))


def may_be_evicted(pod: Pod) -> bool:
    """Static and critical pods are not evicted."""
    return not is_static(pod) and pod_priority(pod) < SYSTEM_CRITICAL_PRIORITY


def _rank(pod: Pod, resource: str) -> tuple[bool, int, int, str]:
    used, requested = usage_of(pod).get(resource, 0), _requested(pod, resource)
    return used <= requested, pod_priority(pod), requested - used, pod.key


def _requested(pod: Pod, resource: str) -> int:
    return 0 if resource == "pids" else pod_requests(pod).get(resource, 0)


def message(pod: Pod, shortage: Shortage) -> str:
    """The message; of a pod with several containers the usage of each is unknown."""
    resource = shortage.resource
    text = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {_written(shortage.threshold)}, "
        f"available: {_written(shortage.available)}. "
    )
    used, requested = usage_of(pod).get(resource, 0), _requested(pod, resource)
    if used > requested and len(pod.spec.containers) == 1:
        text += (
            f"Container {pod.spec.containers[0].name} was using {_written(used)}, "
            f"request is {_written(requested)}, has larger consumption of {resource}. "
        )
    return text


def _written(amount: int) -> str:
    return canonical(parse_quantity(amount), Format.BINARY_SI)
