"""Host ports of a pod, and conflicts between them."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import ContainerPort, PodSpec
from fairlead.api.pods.facts import is_sidecar

ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - compared, never bound

HostPort = tuple[str, str, int]
"""(address, protocol, port); the address is `0.0.0.0` if the pod does not set hostIP."""


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the distinct host ports of containers and sidecars, in order of appearance.

    As in upstream, the ports of ordinary init containers do not count.
    """
    # upstream: pkg/scheduler/util/utils.go:GetHostPorts
    return tuple(
        dict.fromkeys(
            _host_port(port)
            for container in (*spec.containers, *filter(is_sidecar, spec.init_containers))
            for port in container.ports
            if port.host_port > 0
        )
    )


def ports_conflict(a: HostPort, b: HostPort) -> bool:
    """Return True if the host ports `a` and `b` cannot both be used on one node."""
    # upstream: kube-scheduler/framework/types.go:HostPortInfo.CheckConflict
    if a[1:] != b[1:]:
        return False
    return a[0] == b[0] or ALL_ADDRESSES in (a[0], b[0])


def _host_port(port: ContainerPort) -> HostPort:
    return (port.host_ip or ALL_ADDRESSES, port.protocol or "TCP", port.host_port)
