"""Describes the devices of a node: extended resources of device plugins, and devices of drivers.

The requests of a node show neither which devices are unhealthy nor which devices claims use.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.objects import Node
from fairlead.api.quantity import whole_value
from fairlead.api.text.count import counted
from fairlead.engine.plugins.dynamic_resources.device_search import is_repelled
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import PoolDevice
from fairlead.whatif.run.device_use import devices_of
from fairlead.whatif.snapshot.node_pool import with_all_devices


def device_sentences(node: Node, cluster: Cluster) -> Iterator[str]:
    """Yield sentences about the unhealthy devices of `node`, and about the devices in use."""
    yield from _unhealthy(node)
    for driver, devices in devices_of(node, cluster).items():
        yield _used(driver, devices, cluster)


def _unhealthy(node: Node) -> Iterator[str]:
    # upstream: pkg/kubelet/cm/devicemanager/manager.go: GetCapacity
    healthy, every = node.status.allocatable, node.status.capacity
    for name in sorted(with_all_devices({}, every)):
        total, left = whole_value(every[name]), whole_value(healthy.get(name, 0))
        if left < total:
            yield (
                f"Only {left:,} of its {total:,} {name} are allocatable: the device plugin has not "
                "reported the others as healthy."
            )


def _used(driver: str, devices: list[PoolDevice], cluster: Cluster) -> str:
    ledger = cluster.devices
    used = sum(ledger.is_taken(one.id) or ledger.consumed(one.id) is not None for one in devices)
    tainted = sum(is_repelled(one.device, ()) for one in devices)
    parts = [f"{tainted:,} with a taint that keeps claims off"] if tainted else []
    if any(one.device.consumes_counters for one in devices):
        parts.append("some share hardware and exclude each other")
    more = f" ({'; '.join(parts)})" if parts else ""
    return f"Claims use {used:,} of its {counted(len(devices), 'device')} of {driver}{more}."
