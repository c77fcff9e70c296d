"""The utilization of a node's devices, which is the highest utilization of its device pools.

upstream: simulator/dynamicresources/utils/utilization.go
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fairlead.api.objects import Counter, Device, ResourceClaim, ResourceSlice
from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity, round_up
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.utilization import UtilizationError

Pool = tuple[str, str]  # driver, pool


def device_utilization(
    slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]
) -> tuple[str, float]:
    """Return ("driver/pool", utilization) for the pool with the highest utilization.

    `slices` are the slices of the node, and `claims` are the claims of its pods. If several pools
    have the highest utilization, upstream picks one at random. Fairlead picks the last one in
    alphabetical order. Raises UtilizationError if a claim has no allocation, or if a slice of a
    pool is missing.

    upstream: HighestDynamicResourceUtilization
    """
    used = _used_devices(claims)
    by_pool: dict[Pool, list[ResourceSlice]] = defaultdict(list)
    for one in slices:
        by_pool[one.spec.driver, one.spec.pool.name].append(one)
    name, highest = "", 0.0
    for pool in sorted(by_pool):
        value = _pool_utilization(_newest(pool, by_pool[pool]), used[pool])
        if value >= highest:
            name, highest = "/".join(pool), value
    return name, highest


def _used_devices(claims: Iterable[ResourceClaim]) -> dict[Pool, set[str]]:
    """Return the names of the allocated devices, by pool, except devices with admin access.

    Raises UtilizationError if a claim has no allocation.
    """
    found: dict[Pool, set[str]] = defaultdict(set)
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            raise UtilizationError(f"claim {claim.key} not allocated")
        for one in allocation.devices.results:
            if not one.admin_access:
                found[one.driver, one.pool].add(one.device)
    return found


def _newest(pool: Pool, slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of the newest generation; raises UtilizationError if one is missing."""
    generation = max(one.spec.pool.generation for one in slices)
    found = [one for one in slices if one.spec.pool.generation == generation]
    if len(found) != found[0].spec.pool.resource_slice_count:
        raise UtilizationError(f"pool {pool[1]} is incomplete")
    return found


def _pool_utilization(slices: Sequence[ResourceSlice], used: set[str]) -> float:
    """Return the average utilization of the pool's devices, between 0 and 1.

    A device that consumes shared counters is a partition. All other devices are whole devices. Each
    counter set from which partitions consume counts as one partitioned device. If only whole
    devices are in use, partitioned devices are left out of the average. If only partitions are in
    use, whole devices are left out.

    Example: a pool has three whole devices and one partitioned device. One whole device and half of
    the partitioned device are in use. Three quarters of the devices are whole. So the result is 1/3
    * 3/4 + 1/2 * 1/4 = 3/8.

    upstream: calculatePoolUtil
    """
    devices = [device for one in slices for device in one.spec.devices]
    whole = [device for device in devices if not device.consumes_counters]
    partitions = [device for device in devices if device.consumes_counters]
    used_whole = [device for device in whole if device.name in used]
    used_partitions = [device for device in partitions if device.name in used]
    share = len(used_whole) / len(whole) if whole else 0.0
    if not used_partitions:
        return share
    partitioned = {one.counter_set for device in partitions for one in device.consumes_counters}
    partition_share = _partition_utilization(slices, used_partitions, len(partitioned))
    if not used_whole:
        return partition_share
    count = len(partitioned) + len(whole)
    return partition_share * (len(partitioned) / count) + share * (len(whole) / count)


def _partition_utilization(
    slices: Iterable[ResourceSlice], used: Iterable[Device], count: int
) -> float:
    """Return the average utilization of `count` partitioned devices.

    `used` are the partitions in use. Together, the used partitions of a device consume a share of
    each counter of the device. The highest of these shares is the utilization of the device.

    upstream: calculatePartitionableDevicesPoolUtilization
    """
    offered = _sums((s.name, s.counters) for one in slices for s in one.spec.shared_counters)
    consumed = _sums((c.counter_set, c.counters) for one in used for c in one.consumes_counters)
    found = 0.0
    for name, counters in offered.items():
        shares = (
            _value(consumed[name][counter]) / _value(total)
            for counter, total in counters.items()
            if total and counter in consumed.get(name, {})
        )
        found += max(shares, default=0.0) / count
    return found


def _sums(sets: Iterable[tuple[str, dict[str, Counter]]]) -> dict[str, dict[str, int]]:
    """Return the sum of each counter, by counter set and counter name, in units of 10^-9."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, counters in sets:
        for counter, amount in counters.items():
            found[name][counter] += parse_quantity(amount.value).nano
    return found


def _value(nano: int) -> int:
    return round_up(nano, NANOS_PER_UNIT)
