"""DeviceLedger: all devices, and which of them are allocated.

    unallocated claim ──assume──▶ assumed ──the API shows the allocation──▶ allocated
                          └──────── revert ────────┘

Both allocated and assumed claims hold their devices, except those with admin access. The next
scheduling cycle treats an assumption like an allocation in the API. Consumers that are about to be
written into a claim are assumed in the same way (`assume_reservation`, undone by
`revert_reservation`).

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
    """The devices of the cluster, and the claims that hold them.

    `pools` are all devices; `class_version` grows with every DeviceClass change.
    """

    def __init__(self) -> None:
        """Start without devices and allocations."""
        self.pools = DevicePools()
        self.class_version = 0
        self._held: dict[str, tuple[DeviceId, ...]] = {}  # by claim
        self._holders: dict[DeviceId, dict[str, None]] = {}
        self._assumed: dict[str, str] = {}  # by claim: its uid
        self._consumers: dict[str, dict[str, ClaimConsumer]] = {}  # by claim and pod uid

    def is_taken(self, device: DeviceId) -> bool:
        """Return whether some claim holds the device."""
        return device in self._holders

    def holders(self, device: DeviceId) -> list[str]:
        """Return the claims that hold the device.

        There is at most one, unless other writers allocated the device twice.
        """
        return sorted(self._holders.get(device, ()))

    def is_assumed(self, claim: ResourceClaim) -> bool:
        """Return whether the claim's allocation is assumed and the API does not show it yet."""
        return claim.key in self._assumed

    def consumers(self, claim: ResourceClaim) -> tuple[ClaimConsumer, ...]:
        """Return the pods the claim is reserved for, assumed reservations included."""
        pending = self._consumers.get(claim.key)
        shown = claim.status.reserved_for
        if not pending:
            return shown
        uids = {one.uid for one in shown}
        return (*shown, *(one for uid, one in pending.items() if uid not in uids))

    def assume(self, claim: ResourceClaim, allocation: ClaimAllocation) -> None:
        """Record that `claim` will get `allocation`; undone by `revert`."""
        self._assumed[claim.key] = claim.metadata.uid
        self._hold(claim.key, _devices_of(allocation))

    def revert(self, key: str) -> None:
        """Drop the assumption about the claim, if there is one."""
        if self._assumed.pop(key, None) is not None:
            self._hold(key, ())

    def assume_reservation(self, claim: ResourceClaim, consumer: ClaimConsumer) -> None:
        """Record that `claim` will be reserved for `consumer`; undone by `revert_reservation`."""
        self._consumers.setdefault(claim.key, {})[consumer.uid] = consumer

    def revert_reservation(self, key: str, uid: str) -> None:
        """Drop the assumed reservation for the pod `uid`, if there is one."""
        pending = self._consumers.get(key, {})
        pending.pop(uid, None)
        if not pending:
            self._consumers.pop(key, None)

    def observe(self, changed: ApiObject) -> None:
        """Store `changed`, an object from the API.

        If it contains the allocation, end the assumption.
        """
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
        """Remove an object that was deleted from the API."""
        match gone:
            case ResourceSlice():
                self.pools.remove(gone.key)
            case ResourceClaim():
                self._assumed.pop(gone.key, None)
                self._consumers.pop(gone.key, None)
                self._hold(gone.key, ())
            case DeviceClass():
                self.class_version += 1
            case _:
                pass

    def _observe_claim(self, claim: ResourceClaim) -> None:
        key, allocation = claim.key, claim.status.allocation
        for consumer in claim.status.reserved_for:
            self.revert_reservation(key, consumer.uid)
        if allocation is not None:
            self._assumed.pop(key, None)
            self._hold(key, _devices_of(allocation))
        elif self._assumed.get(key) != claim.metadata.uid:
            self._assumed.pop(key, None)
            self._hold(key, ())

    def _hold(self, key: str, devices: tuple[DeviceId, ...]) -> None:
        """Set the devices that the claim holds."""
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
