"""The usage of a node's pods: resources, host ports and volumes.

upstream: pkg/controllers/state/statenode.go, pkg/scheduling/hostportusage.go, volumeusage.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_terminal, is_terminating
from fairlead.api.pods.host_port import ALL_ADDRESSES, HostPort
from fairlead.api.pods.requests import pod_requests
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import merged
from fairlead.engine.autoscaling.karpenter.eviction_cost import eviction_cost
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT
from fairlead.engine.autoscaling.karpenter.pod import is_reschedulable, must_leave
from fairlead.engine.core.float_sum import float_sum

_UNSPECIFIED: Final = (ALL_ADDRESSES, "::", "")

PODS: Final = "pods"
NODES: Final = "nodes"


class PodsOnNode(Struct, frozen=True, dict=True):
    """The pods bound to a node, and their total usage. Terminated pods do not count as usage."""

    pods: tuple[Pod, ...] = ()

    @cached_property
    def running(self) -> tuple[Pod, ...]:
        """The pods that have not terminated."""
        return tuple(pod for pod in self.pods if not is_terminal(pod))

    @cached_property
    def active(self) -> tuple[Pod, ...]:
        """The pods that have not terminated and are not terminating."""
        return tuple(pod for pod in self.running if not is_terminating(pod))

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """The total requests of the running pods."""
        return requests_of(self.running)

    @cached_property
    def daemon_requests(self) -> Mapping[str, int]:
        """The total requests of the running DaemonSet pods."""
        return requests_of(pod for pod in self.running if is_daemon_pod(pod))

    @cached_property
    def reschedulable(self) -> tuple[Pod, ...]:
        """The pods that are rescheduled when the node is removed."""
        return tuple(pod for pod in self.pods if is_reschedulable(pod))

    @cached_property
    def leaving(self) -> tuple[Pod, ...]:
        """The pods that must be gone before the node is removed."""
        return tuple(pod for pod in self.pods if must_leave(pod))

    @cached_property
    def eviction_cost(self) -> float:
        """The total cost of evicting the pods."""
        return float_sum(map(eviction_cost, self.pods))

    @cached_property
    def annotated(self) -> tuple[Pod, ...]:
        """The pods that have the annotation `do-not-disrupt`, with any value."""
        return tuple(pod for pod in self.pods if DO_NOT_DISRUPT in pod.metadata.annotations)

    @cached_property
    def ports(self) -> tuple[HostPort, ...]:
        """The host ports of the running pods."""
        return tuple(port for pod in self.running for port in host_ports(pod))


def requests_of(pods: Iterable[Pod]) -> dict[str, int]:
    """Return the total effective requests of `pods`. Each pod counts 1 for the resource `pods`."""
    found = list(pods)
    total = merged(*map(pod_requests, found))
    total[PODS] = len(found)
    return total


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the pod's containers. Init containers do not count."""
    # upstream: hostportusage.go:GetHostPorts
    return tuple(
        (port.host_ip or ALL_ADDRESSES, port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port > 0
    )


def conflicting_port(
    requested: Iterable[HostPort], used: Iterable[HostPort]
) -> tuple[HostPort, HostPort] | None:
    """Return the first two ports that conflict: one in `requested`, and one in `used`.

    Returns None if no ports conflict.
    """
    # upstream: hostportusage.go:HostPort.Matches
    taken = list(used)
    for one in requested:
        for other in taken:
            if one[1:] == other[1:] and _addresses_meet(one[0], other[0]):
                return one, other
    return None


def _addresses_meet(a: str, b: str) -> bool:
    return a == b or a in _UNSPECIFIED or b in _UNSPECIFIED
