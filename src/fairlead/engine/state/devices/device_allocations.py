"""DeviceLedger: which devices there are, and which are taken.

    unallocated claim ──promise──▶ promised ──the API shows the allocation──▶ allocated
                          └───────── take_back ─────────┘

A device is taken while a claim has it, by allocation or by promise, except where the claim has it
for administration only. The next scheduling cycle sees a promise as if it were in the API. So are
consumers that are being written into a claim: `promise_consumer`, undone by
`take_back_consumer`.

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
    """`pools` are the devices there are; `class_version` grows with every change of a class."""

    def __init__(self) -> None:
        """Nothing is there, nothing is taken."""
        self.pools = DevicePools()
        self.class_version = 0
        self._held: dict[str, tuple[DeviceId, ...]] = {}  # by claim
        self._holders: dict[DeviceId, dict[str, None]] = {}
        self._promised: dict[str, str] = {}  # by claim: its uid
        self._consumers: dict[str, dict[str, ClaimConsumer]] = {}  # by claim and pod uid

    # --- reading ---------------------------------------------------------------------------

    def is_taken(self, device: DeviceId) -> bool:
        """Whether some claim has the device."""
        return device in self._holders

    def holders(self, device: DeviceId) -> list[str]:
        """The claims that have the device: at most one, unless the API was written by others."""
        return sorted(self._holders.get(device, ()))

    def is_promised(self, claim: ResourceClaim) -> bool:
        """Whether the API does not show yet what was allocated to the claim."""
        return claim.key in self._promised

    def consumers(self, claim: ResourceClaim) -> tuple[ClaimConsumer, ...]:
        """Who the claim is reserved for, or is about to be."""
        pending = self._consumers.get(claim.key)
        shown = claim.status.reserved_for
        if not pending:
            return shown
        uids = {one.uid for one in shown}
        return (*shown, *(one for uid, one in pending.items() if uid not in uids))

    # --- promises --------------------------------------------------------------------------

    def promise(self, claim: ResourceClaim, allocation: ClaimAllocation) -> None:
        """`claim` will have `allocation`; undone by `take_back`."""
        self._promised[claim.key] = claim.metadata.uid
        self._hold(claim.key, _devices_of(allocation))

    def take_back(self, key: str) -> None:
        """The claim will not be allocated after all; does nothing if that is not promised."""
        if self._promised.pop(key, None) is not None:
            self._hold(key, ())

    def promise_consumer(self, claim: ResourceClaim, consumer: ClaimConsumer) -> None:
        """`claim` will be reserved for `consumer`; undone by `take_back_consumer`."""
        self._consumers.setdefault(claim.key, {})[consumer.uid] = consumer

    def take_back_consumer(self, key: str, uid: str) -> None:
        """The claim will not be reserved for the pod `uid`, or is by now."""
        pending = self._consumers.get(key, {})
        pending.pop(uid, None)
        if not pending:
            self._consumers.pop(key, None)

    # --- what happened ---------------------------------------------------------------------

    def observe(self, changed: ApiObject) -> None:
        """The API shows `changed`; an allocation that it shows needs no promise any more."""
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
        """The API has `gone` no more."""
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
        """Let the claim have `devices` and nothing else."""
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
