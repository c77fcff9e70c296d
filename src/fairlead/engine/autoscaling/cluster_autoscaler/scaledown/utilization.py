"""The utilization of a node: the share of its resources that its pods request.

upstream: simulator/utilization/info.go
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    GPU_RESOURCES,
)
from fairlead.engine.autoscaling.cluster_autoscaler.gpu import gpu_resource, has_gpu
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    is_daemon_set_pod,
    is_long_terminating,
    is_mirror_pod,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class UtilizationError(Exception):
    """The utilization cannot be computed, for example if a resource has no allocatable amount."""


class Utilization(Struct, frozen=True, kw_only=True):
    """The shares of a node's allocatable resources that its pods request.

    `devices` is the utilization of the node's most utilized device pool. `value` is the share that
    scale-down compares with its threshold. `resource` names the resource of this share
    ("driver/pool" for devices).
    """

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    devices: float = 0.0
    resource: str
    value: float

    def __str__(self) -> str:
        """Return the text for events (Go's %v of the struct)."""
        shares = (self.cpu, self.memory, self.gpu, self.devices)
        shown = " ".join(_go_float(share) for share in shares)
        return f"{{{shown} {self.resource} {_go_float(self.value)}}}"


class UtilizationRules(Struct, frozen=True):
    """Settings: the kinds of pods to ignore, and the label that marks GPU nodes."""

    ignore_daemon_sets: bool
    ignore_mirror_pods: bool
    gpu_label: str

    def ignores(self, pod: PodInfo) -> bool:
        """Return whether the rules ignore `pod` as a DaemonSet pod or as a mirror pod."""
        is_ignored = self.ignore_daemon_sets and is_daemon_set_pod(pod.pod)
        return is_ignored or (self.ignore_mirror_pods and is_mirror_pod(pod.pod))


def node_utilization(
    info: NodeInfo, pods: Iterable[PodInfo], rules: UtilizationRules, now: Instant
) -> Utilization:
    """Return the utilization of a node: of its GPU if it is a GPU node, else of cpu or memory.

    For cpu and memory, the utilization is the larger of the two shares. Raises UtilizationError if
    cpu or memory has no allocatable amount. If a GPU node has no allocatable GPU, its utilization
    is 0.
    """
    pods = list(pods)
    if has_gpu(info.node, rules.gpu_label):
        resource = gpu_resource(info.node)
        if resource is None:
            return Utilization(resource=GPU_RESOURCES[0], value=0.0)
        share = _share(info, pods, resource, rules, now)
        return Utilization(gpu=share, resource=resource, value=share)
    cpu = _share(info, pods, "cpu", rules, now)
    memory = _share(info, pods, "memory", rules, now)
    resource, value = ("cpu", cpu) if cpu > memory else ("memory", memory)
    return Utilization(cpu=cpu, memory=memory, resource=resource, value=value)


def _share(
    info: NodeInfo, pods: Iterable[PodInfo], resource: str, rules: UtilizationRules, now: Instant
) -> float:
    """Return the requested amount of `resource` divided by the node's allocatable amount.

    If `rules.ignores` is True for a pod, its request is not counted, but subtracted from the
    allocatable amount. The requests of pods that have been terminating for too long are neither
    counted nor subtracted. Raises UtilizationError if the node has no allocatable amount of
    `resource`.
    """
    allocatable = info.node.status.allocatable
    if resource not in allocatable:
        raise UtilizationError(f"failed to get {resource} from {info.name}")
    offered = milli_value(allocatable[resource])
    if not offered:
        raise UtilizationError(f"{resource} is 0 at {info.name}")
    requested = ignored = 0
    amount_of = _AMOUNTS.get(resource) or partial(_scalar, resource)
    for pod in pods:
        amount = amount_of(pod)
        if rules.ignores(pod):
            ignored += amount
        elif not is_long_terminating(pod.pod, now):
            requested += amount
    left = offered - ignored
    if left:
        return requested / left
    return math.nan if not requested else math.inf


def _scalar(resource: str, pod: PodInfo) -> int:
    return pod_requests(pod.pod).get(resource, 0) * _MILLI


_MILLI: Final = 1000
_AMOUNTS: Final[Mapping[str, Callable[[PodInfo], int]]] = {
    "cpu": lambda pod: pod.shape.milli_cpu,
    "memory": lambda pod: pod.shape.memory * _MILLI,
}


def _go_float(value: float) -> str:
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if exponent or abs(value) < 1e-4:
        power = int(exponent or 0)
        return f"{mantissa}e{power:+03d}"
    return text
