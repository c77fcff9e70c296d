"""Device taints and matchAttribute constraints: what else decides about a device besides selectors.

upstream: allocator_stable.go: taintPreventsAllocation, matchAttributeConstraint;
resourceclaim/devicetoleration.go: ToleratesTaint
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.objects import Device, DeviceAttribute, DeviceTaint, DeviceToleration
from fairlead.engine.plugins.dynamic_resources.device_request import ResolvedRequest
from fairlead.engine.state.devices.device_pools import PoolDevice

_REPELLING: Final = ("NoSchedule", "NoExecute")


def is_repelled(device: Device, tolerations: Iterable[DeviceToleration]) -> bool:
    """Return True if the device has a taint that none of `tolerations` tolerates."""
    wanted = tuple(tolerations)
    return any(
        taint.effect in _REPELLING and not any(_tolerates(one, taint) for one in wanted)
        for taint in device.taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case _:
            return False


class AttributeMatch:
    """All devices of the named requests (of all, if none is named) have one attribute value."""

    __slots__ = ("_attribute", "_count", "_requests", "_value")

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        """Start without devices; `attribute` is a name with its domain."""
        self._requests = requests
        self._attribute = attribute
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, wish: ResolvedRequest, one: PoolDevice) -> bool:
        """Add the device and return True if it satisfies the constraint. Undone by `remove`."""
        if not self._concerns(wish):
            return True
        value = _attribute_of(one, self._attribute)
        if value is None or value == DeviceAttribute():
            return False
        if self._count and value != self._value:
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, wish: ResolvedRequest) -> None:
        """Remove the last device added for `wish`."""
        if self._concerns(wish):
            self._count -= 1

    def _concerns(self, wish: ResolvedRequest) -> bool:
        return not self._requests or wish.is_meant_by(self._requests)


def _attribute_of(one: PoolDevice, name: str) -> DeviceAttribute | None:
    """The attribute's value; a driver may omit its own domain in the name."""
    found = one.device.attributes.get(name)
    domain, _, own_name = name.partition("/")
    if found is None and domain == one.id[0]:
        return one.device.attributes.get(own_name)
    return found
