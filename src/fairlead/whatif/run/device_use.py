"""The devices of nodes, and how many of them are in use, as amounts by driver.

A device that several nodes can use belongs to no node, so it is not counted.

Example: a node has two GPUs in ResourceSlices of the driver `gpu.example.com`, and a claim holds
one of them. The amounts of `gpu.example.com devices` are 2 allocatable and 1 requested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from fairlead.api.objects import Node
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import PoolDevice, is_usable_on
from fairlead.whatif.outcome.run_outcome import NodeEnd


def devices_of(node: Node, cluster: Cluster) -> dict[str, list[PoolDevice]]:
    """Return the devices that only `node` can use, by driver in alphabetical order."""
    found: dict[str, list[PoolDevice]] = {}
    for pool in cluster.devices.pools.on(node):
        for one in pool.devices:
            if one.slice.spec.node_name and is_usable_on(one, node):
                found.setdefault(one.id[0], []).append(one)
    return dict(sorted(found.items()))


def device_amounts(node: Node, cluster: Cluster) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many devices of each driver are allocatable and requested on `node`.

    Both results are keyed by the resource name, such as `gpu.example.com devices`.
    A device with a taint that keeps claims off is not allocatable. A partition counts as requested
    if it is allocated, or if other partitions use its hardware.
    """
    pools, ledger = cluster.devices.pools, cluster.devices
    if not pools.slices_of(node.metadata.name):
        return {}, {}
    # Imported only if nodes have devices.
    from fairlead.engine.plugins.dynamic_resources.device_search import (  # noqa: PLC0415
        is_repelled,
    )
    from fairlead.engine.plugins.dynamic_resources.shared_counters import (  # noqa: PLC0415
        SharedCounters,
    )

    counters = SharedCounters(pools.on(node), ledger)
    allocatable, requested = {}, {}
    for driver, devices in devices_of(node, cluster).items():
        name = f"{driver} devices"
        allocatable[name] = sum(not is_repelled(one.device, ()) for one in devices)
        requested[name] = sum(
            ledger.is_allocated(one.id) or not counters.suffice(one) for one in devices
        )
    return allocatable, requested


def total_device_amounts(cluster: Cluster) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sums of `device_amounts` of all nodes."""
    allocatable: Counter[str] = Counter()
    requested: Counter[str] = Counter()
    for info in cluster.table.nodes():
        offered, used = device_amounts(info.node, cluster)
        allocatable.update(offered)
        requested.update(used)
    return dict(allocatable), dict(requested)


def with_devices(
    ends: Iterable[NodeEnd], nodes: Mapping[str, Node], cluster: Cluster
) -> tuple[NodeEnd, ...]:
    """Return `ends` with their allocatable and requested devices; `nodes` are the nodes by name."""
    return tuple(_with_devices(end, nodes[end.name], cluster) for end in ends)


def _with_devices(end: NodeEnd, node: Node, cluster: Cluster) -> NodeEnd:
    allocatable, requested = device_amounts(node, cluster)
    if not allocatable:
        return end
    return replace(
        end,
        allocatable={**end.allocatable, **allocatable},
        requested={**end.requested, **requested},
    )
