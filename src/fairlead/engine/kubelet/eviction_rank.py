"""Whom a kubelet evicts first when its node runs short, and what it says to them.

    1 who uses more than was requested
    2 who has the lower priority
    3 who is further beyond the request
    last, pods within their requests; of process ids nothing can be requested: 2, then the greediest

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
    """`pods` in the order in which they are evicted; equals by namespace and name."""
    return sorted(pods, key=lambda pod: _rank(pod, resource))


def may_be_evicted(pod: Pod) -> bool:
    """Static pods and those that the system needs stay."""
    return not is_static(pod) and pod_priority(pod) < SYSTEM_CRITICAL_PRIORITY


def _rank(pod: Pod, resource: str) -> tuple[bool, int, int, str]:
    used, requested = usage_of(pod).get(resource, 0), _requested(pod, resource)
    return used <= requested, pod_priority(pod), requested - used, pod.key


def _requested(pod: Pod, resource: str) -> int:
    return 0 if resource == "pids" else pod_requests(pod).get(resource, 0)


def message(pod: Pod, shortage: Shortage) -> str:
    """Why `pod` has to go; of a pod with several containers it is not known which uses what."""
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
