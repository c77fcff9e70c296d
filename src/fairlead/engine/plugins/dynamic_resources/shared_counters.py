"""SharedCounters: capacity that devices of a pool share, such as the memory of a partitioned GPU.

A ResourceSlice of a pool defines counter sets with amounts. A device consumes amounts of some
counters while it is allocated. The device can be allocated only if enough of each counter is left.

Example: the set `gpu-0` has 40 GiB of memory. Three devices consume this memory: `whole` (40 GiB),
`half-0` and `half-1` (20 GiB each). Once `half-0` is allocated, `whole` no longer fits, but
`half-1` does.

upstream: structured/internal/incubating/allocator_incubating.go: checkAvailableCounters
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.api.quantity import milli_value
from fairlead.engine.state.devices.device_ledger import DeviceLedger
from fairlead.engine.state.devices.device_pools import NodeDevicePool, Pool, PoolDevice, PoolId

CounterId = tuple[str, str]  # counter set, counter


class SharedCounters:
    """The remaining amounts of all pools' counters during one search for devices."""

    def __init__(self, pools: Sequence[NodeDevicePool], ledger: DeviceLedger) -> None:
        """The allocations in `ledger` are read when a counter of `pools` is first needed."""
        self._pools: dict[PoolId, Pool] = {one.pool.id: one.pool for one in pools}
        self._ledger = ledger
        self._available: dict[PoolId, dict[CounterId, int]] = {}

    def suffice(self, device: PoolDevice) -> bool:
        """Return whether the pool has enough left of each counter that the device consumes."""
        if not device.device.consumes_counters:
            return True
        available = self._of(device.id[:2])
        return all(available.get(counter, -1) >= amount for counter, amount in _consumed(device))

    def consume(self, device: PoolDevice) -> None:
        """Consume the device's counters."""
        self._add(device, -1)

    def release(self, device: PoolDevice) -> None:
        """Revert `consume`."""
        self._add(device, 1)

    def _add(self, one: PoolDevice, sign: int) -> None:
        if one.device.consumes_counters:
            available = self._of(one.id[:2])
            for counter, amount in _consumed(one):
                available[counter] += sign * amount

    def _of(self, pool_id: PoolId) -> dict[CounterId, int]:
        """Return the remaining amount of each counter of the pool, in thousandths of a unit."""
        found = self._available.get(pool_id)
        if found is None:
            found = self._available[pool_id] = _totals(self._pools[pool_id])
            for _, devices in self._pools[pool_id].slices:
                for one in devices:
                    if self._ledger.is_allocated(one.id):
                        for counter, amount in _consumed(one):
                            if counter in found:
                                found[counter] -= amount
        return found


def _totals(pool: Pool) -> dict[CounterId, int]:
    return {
        (one.name, name): milli_value(counter.value)
        for found, _ in pool.slices
        for one in found.spec.shared_counters
        for name, counter in one.counters.items()
    }


def _consumed(one: PoolDevice) -> Iterator[tuple[CounterId, int]]:
    for consumption in one.device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), milli_value(counter.value)
