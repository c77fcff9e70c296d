"""DeviceLedger: all devices, and which of them are allocated.

    unallocated claim ──promise──▶ promised ──the API shows the allocation──▶ allocated
                          └───────── take_back ─────────┘

A claim holds its devices by allocation or by promise, unless it has admin access only. The next
scheduling cycle treats a promise like an allocation in the API. The same holds for consumers that
are being written into a claim: `promise_consumer`, undone by `take_back_consumer`.

upstream: plugins/dynamicresources/{dra_manager,allocateddevices}.go
"""

from __future__ import annotations

from fairlead.api.objects import (
    ApiObject,
    ClaimAllocation,
    ClaimConsumer,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from fairlead.engine.state.devices.device_pools import DeviceId, DevicePools


class DeviceLedger:
    """`pools` are all devices; `class_version` grows with every DeviceClass change."""

    def __init__(self) -> None:
        """Start without devices and allocations."""
        self.pools = DevicePools()
        self.class_version = 0
        self._held: dict[str, tuple[DeviceId, ...]] = {}  # by claim
        self._holders: dict[DeviceId, dict[str, None]] = {}
        self._promised: dict[str, str] = {}  # by claim: its uid
        self._consumers: dict[str, dict[str, ClaimConsumer]] = {}  # by claim and pod uid

    # --- reading ---------------------------------------------------------------------------

    def is_taken(self, device: DeviceId) -> bool:
        """Whether some claim holds the device."""
        return device in self._holders

    def holders(self, device: DeviceId) -> list[str]:
        """The claims that hold the device: at most one, unless other writers allocated it twice."""
        return sorted(self._holders.get(device, ()))

    def is_promised(self, claim: ResourceClaim) -> bool:
        """Whether the claim's allocation is decided but not yet in the API."""
        return claim.key in self._promised

    def consumers(self, claim: ResourceClaim) -> tuple[ClaimConsumer, ...]:
        """The pods the claim is reserved for, promised reservations included."""
        pending = self._consumers.get(claim.key)
        shown = claim.status.reserved_for
        if not pending:
            return shown
        uids = {one.uid for one in shown}
        return (*shown, *(one for uid, one in pending.items() if uid not in uids))

    # --- promises --------------------------------------------------------------------------

    def promise(self, claim: ResourceClaim, allocation: ClaimAllocation) -> None:
        """Record that `claim` will get `allocation`; undone by `take_back`."""
        self._promised[claim.key] = claim.metadata.uid
        self._hold(claim.key, _devices_of(allocation))

    def take_back(self, key: str) -> None:
        """Drop the promise for the claim; does nothing if there is none."""
        if self._promised.pop(key, None) is not None:
            self._hold(key, ())

    def promise_consumer(self, claim: ResourceClaim, consumer: ClaimConsumer) -> None:
        """Record that `claim` will be reserved for `consumer`; undone by `take_back_consumer`."""
        self._consumers.setdefault(claim.key, {})[consumer.uid] = consumer

    def take_back_consumer(self, key: str, uid: str) -> None:
        """Drop the promised reservation for the pod `uid`; does nothing if there is none."""
        pending = self._consumers.get(key, {})
        pending.pop(uid, None)
        if not pending:
            self._consumers.pop(key, None)

    # --- what happened ---------------------------------------------------------------------

    def observe(self, changed: ApiObject) -> None:
        """Take over `changed` from the API; an allocation it contains ends the promise."""
        match changed:
            case ResourceSlice():
                self.pools.put(changed)
            case ResourceClaim():
                self._observe_claim(changed)
            case DeviceClass():
                self.class_version += 1
            case _:
                pass

    def observe_gone(self, gone: ApiObject) -> None:
        """Forget an object that was deleted from the API."""
        match gone:
            case ResourceSlice():
                self.pools.remove(gone.key)
            case ResourceClaim():
                self._promised.pop(gone.key, None)
                self._consumers.pop(gone.key, None)
                self._hold(gone.key, ())
            case DeviceClass():
                self.class_version += 1
            case _:
                pass

    def _observe_claim(self, claim: ResourceClaim) -> None:
        key, allocation = claim.key, claim.status.allocation
        for consumer in claim.status.reserved_for:
            self.take_back_consumer(key, consumer.uid)
        if allocation is not None:
            self._promised.pop(key, None)
            self._hold(key, _devices_of(allocation))
        elif self._promised.get(key) != claim.metadata.uid:
            self._promised.pop(key, None)
            self._hold(key, ())

    def _hold(self, key: str, devices: tuple[DeviceId, ...]) -> None:
        """Make the claim hold exactly `devices`."""
        before = self._held.pop(key, ())
        if devices:
            self._held[key] = devices
        if before == devices:
            return
        for device in before:
            holders = self._holders[device]
            holders.pop(key, None)
            if not holders:
                del self._holders[device]
        for device in devices:
            self._holders.setdefault(device, {})[key] = None
        for pool in {device[:2]: None for device in (*before, *devices)}:
            self.pools.note(pool)


def _devices_of(allocation: ClaimAllocation) -> tuple[DeviceId, ...]:
    results = allocation.devices.results
    ids = {(one.driver, one.pool, one.device): None for one in results if not one.admin_access}
    return tuple(ids)
