"""The devices of nodes, and how many of them are in use, as amounts by driver.

A device that several nodes can use belongs to no node, so it is not counted. A pod can request
devices as an extended resource of a DeviceClass. On a node that does not list this resource, such a
request counts as devices, not as an amount of the resource.

Example: a node has two GPUs in ResourceSlices of the driver `gpu.example.com`, and a claim holds
one GPU. The amounts of `gpu.example.com devices` are 2 allocatable and 1 requested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from msgspec.structs import replace

from fairlead.api.objects import Node, ResourceClaim
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import DeviceId, PoolDevice, is_usable_on
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd, device_resource


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

    Both results are keyed by the resource name, such as `gpu.example.com devices`. A device is not
    allocatable if it has a taint that keeps claims off. A partition counts as requested if it is
    allocated, or if other partitions use its hardware.
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
        name = device_resource(driver)
        allocatable[name] = sum(not is_repelled(one.device, ()) for one in devices)
        requested[name] = sum(
            ledger.is_allocated(one.id) or not counters.suffice(one) for one in devices
        )
    return allocatable, requested


def total_device_amounts(cluster: Cluster) -> tuple[dict[str, int], dict[str, int]]:
    """Return (allocatable, requested), the numbers of devices of all nodes by driver."""
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
    """Return `ends`, completed with the allocatable and the requested devices of each node.

    The field `devices` of each pod on the nodes is also set. `nodes` are the nodes by name.
    """
    held = _devices_by_pod(cluster)
    return tuple(_with_devices(end, nodes[end.name], cluster, held) for end in ends)


def _with_devices(
    end: NodeEnd, node: Node, cluster: Cluster, held: Mapping[str, Iterable[DeviceId]]
) -> NodeEnd:
    if extended := cluster.devices.extended:
        offered = end.allocatable
        own = {
            name: amount
            for name, amount in end.requested.items()
            if not extended.is_delegated(name, offered.get(name, 0))
        }
        end = end if len(own) == len(end.requested) else replace(end, requested=own)
    allocatable, requested = device_amounts(node, cluster)
    if not allocatable:
        return end
    local = {one.id for devices in devices_of(node, cluster).values() for one in devices}
    return replace(
        end,
        allocatable={**end.allocatable, **allocatable},
        requested={**end.requested, **requested},
        pods=tuple(_with_own_devices(pod, held.get(pod.key, ()), local) for pod in end.pods),
    )


def _with_own_devices(pod: PodEnd, held: Iterable[DeviceId], local: Container[DeviceId]) -> PodEnd:
    counts = Counter(device_resource(driver) for driver, *_ in filter(local.__contains__, held))
    return replace(pod, devices=dict(counts)) if counts else pod


def _devices_by_pod(cluster: Cluster) -> dict[str, list[DeviceId]]:
    """Return the devices that claims hold for each pod, by key of the pod."""
    found: dict[str, list[DeviceId]] = {}
    for claim in cluster.related.all_of(ResourceClaim):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        results = (one for one in allocation.devices.results if not one.admin_access)
        devices = dict.fromkeys((one.driver, one.pool, one.device) for one in results)
        for user in cluster.devices.consumers(claim):
            found.setdefault(f"{claim.metadata.namespace}/{user.name}", []).extend(devices)
    return found


def extended_amounts(cluster: Cluster) -> dict[str, int]:
    """Return the requests of pods for extended resources that their nodes provide as devices."""
    found: dict[str, int] = {}
    extended, names = cluster.devices.extended, cluster.table.resources.names
    if not extended:
        return found
    for info in cluster.table.nodes():
        for column, name in enumerate(names):
            amount = info.requested_of(column)
            if amount and extended.is_delegated(name, info.allocatable_of(column)):
                found[name] = found.get(name, 0) + amount
    return found
