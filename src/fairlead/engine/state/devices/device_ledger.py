"""DeviceLedger: all devices, and the claims to which they are allocated.

    unallocated claim ──assume──▶ assumed ──the API shows the allocation──▶ allocated
                          └──────── revert ────────┘

A claim with an allocation, assumed or in the API, holds the allocated devices. Devices allocated
with admin access are not held. An allocation result with a share ID holds only the capacity that it
consumes. So several claims can hold shares of a device. The next scheduling cycle treats an assumed
allocation like an allocation in the API. `assume_reservation` records a reservation before it is
written into the claim; `revert_reservation` undoes this.

upstream: plugins/dynamicresources/{dra_manager,allocateddevices}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fairlead.api.objects import (
    AllocatedDevice,
    ClaimAllocation,
    ClaimConsumer,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from fairlead.api.quantity import parse_quantity
from fairlead.engine.state.devices.device_pools import EVERYWHERE, DeviceId, DevicePools
from fairlead.engine.state.devices.extended_resources import CLAIM_ANNOTATION, ExtendedResources

Amounts = tuple[tuple[str, int], ...]  # (capacity, amount in units of 10^-9)
Share = tuple[DeviceId, Amounts]
DeviceObject = ResourceClaim | ResourceSlice | DeviceClass


class _Assumption(NamedTuple):
    """An assumed allocation of a claim.

    `uid` is the claim's UID, "" if the claim does not exist yet. The pods of the PodGroup `group`
    can share the allocation. If `group` is "", no pods can share the allocation.
    """

    uid: str
    allocation: ClaimAllocation
    group: str


class DeviceLedger:
    """The devices of the cluster, and the claims that hold them.

    `pools` contains all devices. `class_version` increases with every DeviceClass change.
    `extended` maps each extended resource to the DeviceClass that provides it.
    """

    def __init__(self) -> None:
        """Start without devices and without allocations."""
        self.pools = DevicePools()
        self.class_version = 0
        self.extended = ExtendedResources()
        self._special: dict[str, str] = {}  # by uid of a pod: its claim for extended resources
        self._held: dict[str, tuple[DeviceId, ...]] = {}  # by claim
        self._holders: dict[DeviceId, dict[str, None]] = {}
        self._shares: dict[str, tuple[Share, ...]] = {}  # by claim
        self._sharers: dict[DeviceId, int] = {}  # the number of shares
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._assumed: dict[str, _Assumption] = {}  # by claim
        self._consumers: dict[str, dict[str, ClaimConsumer]] = {}  # by claim and pod uid

    def is_taken(self, device: DeviceId) -> bool:
        """Return whether a claim holds the whole device, not only a share of it."""
        return device in self._holders

    def is_allocated(self, device: DeviceId) -> bool:
        """Return whether a claim holds the device or a share of it."""
        return device in self._holders or device in self._sharers

    def consumed(self, device: DeviceId) -> Mapping[str, int] | None:
        """Return the capacity that the device's shares consume; None if there are no shares.

        The result maps the names of capacities to amounts in units of 10^-9.
        """
        return self._consumed.get(device)

    def holders(self, device: DeviceId) -> list[str]:
        """Return the keys of the claims that hold the whole device.

        Usually, at most one claim holds the device. Several claims hold the device if another
        writer allocated the device several times.
        """
        return sorted(self._holders.get(device, ()))

    def is_assumed(self, claim: ResourceClaim) -> bool:
        """Return whether the claim's allocation is assumed and not yet in the API."""
        return claim.key in self._assumed

    def shared_allocation(self, claim: ResourceClaim, group: str) -> ClaimAllocation | None:
        """Return the assumed allocation of `claim` if pods of the PodGroup `group` can share it.

        The result is None if there is no such allocation, or if `group` is "".
        """
        assumed = self._assumed.get(claim.key)
        is_shared = assumed is not None and assumed.group == group != ""
        return assumed.allocation if assumed is not None and is_shared else None

    def consumers(self, claim: ResourceClaim) -> tuple[ClaimConsumer, ...]:
        """Return the consumers for which the claim is reserved, including assumed reservations."""
        pending = self._consumers.get(claim.key)
        shown = claim.status.reserved_for
        if not pending:
            return shown
        uids = {one.uid for one in shown}
        return (*shown, *(one for uid, one in pending.items() if uid not in uids))

    def assume(self, claim: ResourceClaim, allocation: ClaimAllocation, group: str = "") -> None:
        """Record that `claim` will get `allocation`; `revert` undoes this.

        If the claim does not exist yet, the uid of `claim` is "". The pods of the PodGroup `group`
        can share the allocation before the API shows it.
        """
        self._assumed[claim.key] = _Assumption(claim.metadata.uid, allocation, group)
        self._hold(claim.key, allocation)

    def revert(self, key: str) -> None:
        """Drop the assumed allocation of the claim `key`, if there is one."""
        if self._assumed.pop(key, None) is not None:
            self._hold(key, None)

    def assume_reservation(self, claim: ResourceClaim, consumer: ClaimConsumer) -> None:
        """Record that `claim` will be reserved for `consumer`; `revert_reservation` undoes this."""
        self._consumers.setdefault(claim.key, {})[consumer.uid] = consumer

    def revert_reservation(self, key: str, uid: str) -> None:
        """Drop the assumed reservation of the claim `key` for the pod `uid`, if there is one."""
        pending = self._consumers.get(key, {})
        pending.pop(uid, None)
        if not pending:
            self._consumers.pop(key, None)

    def special_claim_of(self, uid: str) -> str | None:
        """Return the key of the claim for the extended resources of the pod `uid`, or None."""
        return self._special.get(uid)

    def observe(self, changed: DeviceObject) -> bool:
        """Store `changed`, an object from the API.

        If `changed` is a claim, assumptions about it may be dropped. An assumed reservation is
        dropped if the claim's status contains the reservation. An assumed allocation is dropped if
        the status contains an allocation, or if the assumption was about an earlier claim of the
        same name.

        Returns whether the mapping of extended resources to DeviceClasses changed.
        """
        if isinstance(changed, DeviceClass):
            self.class_version += 1
            self.pools.note_node(EVERYWHERE)
            return self.extended.put(changed)
        if isinstance(changed, ResourceSlice):
            self.pools.put(changed)
        else:
            self._observe_claim(changed)
        return False

    def observe_deleted(self, gone: DeviceObject) -> bool:
        """Remove an object that was deleted from the API.

        Returns whether the mapping of extended resources to DeviceClasses changed.
        """
        if isinstance(gone, DeviceClass):
            self.class_version += 1
            self.pools.note_node(EVERYWHERE)
            return self.extended.remove(gone.key)
        if isinstance(gone, ResourceSlice):
            self.pools.remove(gone.key)
            return False
        self._assumed.pop(gone.key, None)
        self._consumers.pop(gone.key, None)
        self._hold(gone.key, None)
        if self._special.get(_pod_of(gone)) == gone.key:
            del self._special[_pod_of(gone)]
        return False

    def _observe_claim(self, claim: ResourceClaim) -> None:
        key, allocation = claim.key, claim.status.allocation
        for consumer in claim.status.reserved_for:
            self.revert_reservation(key, consumer.uid)
        if allocation is not None:
            self._assumed.pop(key, None)
            self._hold(key, allocation)
        elif (found := self._assumed.get(key)) is None or found.uid not in (
            claim.metadata.uid,
            "",
        ):
            self._assumed.pop(key, None)
            self._hold(key, None)
        if claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true" and _pod_of(claim):
            self._special[_pod_of(claim)] = key

    def _hold(self, key: str, allocation: ClaimAllocation | None) -> None:
        """Set the devices and shares that the claim `key` holds; mark their pools as changed."""
        results = () if allocation is None else allocation.devices.results
        own = [one for one in results if not one.admin_access]
        touched = [
            *self._hold_devices(key, tuple(dict.fromkeys(_id(r) for r in own if not r.share_id))),
            *self._hold_shares(key, tuple(_shares_of(own))),
        ]
        for pool in {device[:2]: None for device in touched}:
            self.pools.note(pool)

    def _hold_devices(self, key: str, devices: tuple[DeviceId, ...]) -> Iterable[DeviceId]:
        """Store that the claim `key` holds each of `devices` as a whole.

        Returns the devices that the claim held before, followed by `devices`. Returns () if nothing
        has changed. `_hold_shares` does the same for shares of devices.
        """
        before = self._held.pop(key, ())
        if devices:
            self._held[key] = devices
        if before == devices:
            return ()
        for device in before:
            holders = self._holders[device]
            holders.pop(key, None)
            if not holders:
                del self._holders[device]
        for device in devices:
            self._holders.setdefault(device, {})[key] = None
        return (*before, *devices)

    def _hold_shares(self, key: str, shares: tuple[Share, ...]) -> Iterable[DeviceId]:
        """Set the shares that the claim `key` holds; return the devices whose shares changed."""
        before = self._shares.pop(key, ())
        if shares:
            self._shares[key] = shares
        if before == shares:
            return ()
        for device, amounts in before:
            self._add_share(device, amounts, -1)
        for device, amounts in shares:
            self._add_share(device, amounts, 1)
        return [device for device, _ in (*before, *shares)]

    def _add_share(self, device: DeviceId, amounts: Amounts, sign: int) -> None:
        self._sharers[device] = self._sharers.get(device, 0) + sign
        if not self._sharers[device]:
            del self._sharers[device]
            self._consumed.pop(device, None)
        elif amounts:
            consumed = self._consumed.setdefault(device, {})
            for name, amount in amounts:
                consumed[name] = consumed.get(name, 0) + sign * amount


def _pod_of(claim: ResourceClaim) -> str:
    """Return the UID of the pod that controls the claim; "" if no pod controls it."""
    return next((one.uid for one in claim.metadata.owner_references if one.controller), "")


def _id(result: AllocatedDevice) -> DeviceId:
    return (result.driver, result.pool, result.device)


def _shares_of(results: Iterable[AllocatedDevice]) -> Iterator[Share]:
    """Yield the shares in `results` (upstream: allocateddevices.go: foreachAllocatedDevice)."""
    for one in results:
        if one.share_id:
            amounts = one.consumed_capacity.items()
            yield _id(one), tuple((name, parse_quantity(text).nano) for name, text in amounts)
