"""DeviceTaints: the NoExecute taints of devices, from ResourceSlices and DeviceTaintRules.

ResourceSlices of older generations of a pool are ignored. A DeviceTaintRule also taints devices
that are in no slice. A taint without timeAdded counts from the time at which it was first observed
on its slice or rule.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go: pool, allEvictingDeviceTaints
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Device, DeviceTaint, DeviceTaintRule, ResourceSlice
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.devices.device_pools import DeviceId, PoolId, rule_selects

NO_EXECUTE: Final = "NoExecute"


class EvictingTaint(Struct, frozen=True):
    """A NoExecute taint that has existed since the instant `since`.

    `rule` is the uid of the DeviceTaintRule that sets the taint, "" if a ResourceSlice sets it.
    """

    taint: DeviceTaint
    since: Instant
    rule: str = ""


class DeviceTaints:
    """The ResourceSlices and DeviceTaintRules with their taints; `rules` is keyed by name."""

    def __init__(self) -> None:
        self.rules: dict[str, DeviceTaintRule] = {}
        self._rule_seen: dict[str, Instant] = {}
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        # By slice: the times at which its taints without timeAdded were first observed.
        self._seen: dict[str, dict[tuple[str, DeviceTaint], Instant]] = {}

    def put_slice(self, changed: ResourceSlice, now: Instant) -> bool:
        """Store a slice; return whether taints of its pool may have changed."""
        slices = self._slices.setdefault(pool_of(changed), {})
        before = slices.get(changed.key)
        slices[changed.key] = changed
        undated = [
            (device.name, taint)
            for device in changed.spec.devices
            for taint in device.taints
            if taint.effect == NO_EXECUTE and not taint.time_added
        ]
        known = self._seen.pop(changed.key, {})
        if undated:
            self._seen[changed.key] = {one: known.get(one, now) for one in undated}
        is_tainted = _has_taints(changed) or (before is not None and _has_taints(before))
        return is_tainted or len(slices) > 1

    def remove_slice(self, gone: ResourceSlice) -> None:
        """Remove the slice `gone`."""
        self._seen.pop(gone.key, None)
        slices = self._slices.get(pool_of(gone), {})
        slices.pop(gone.key, None)
        if not slices:
            self._slices.pop(pool_of(gone), None)

    def put_rule(self, rule: DeviceTaintRule, now: Instant) -> None:
        """Store `rule`.

        If the taint of `rule` is new or changed and has no timeAdded, the taint counts as
        added at `now`.
        """
        before = self.rules.get(rule.key)
        if before is None or before.spec.taint != rule.spec.taint:
            self._rule_seen[rule.key] = now
        self.rules[rule.key] = rule

    def remove_rule(self, name: str) -> None:
        """Remove the rule `name`."""
        del self.rules[name], self._rule_seen[name]

    def published(self) -> Iterator[DeviceId]:
        """Yield the devices in the newest generation of each pool."""
        for pool in self._slices:
            for one in self._newest(pool):
                yield from ((*pool, device.name) for device in one.spec.devices)

    def of(self, device: DeviceId, rules: Iterable[DeviceTaintRule]) -> Iterator[EvictingTaint]:
        """Yield the NoExecute taints of `device`: first from its slice, then from `rules`.

        All `rules` must have the effect NoExecute.
        """
        found = self._find(device)
        if found is not None:
            listed, described = found
            for taint in described.taints:
                if taint.effect == NO_EXECUTE:
                    since = _time_added(taint)
                    if since is None:
                        since = self._seen[listed.key][described.name, taint]
                    yield EvictingTaint(taint, since)
        for rule in rules:
            if rule_selects(rule, device):
                since = _time_added(rule.spec.taint)
                if since is None:
                    since = self._rule_seen[rule.key]
                yield EvictingTaint(rule.spec.taint, since, rule.metadata.uid)

    def _find(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        described = (
            (one, each)
            for one in self._newest(device[:2])
            for each in one.spec.devices
            if each.name == device[2]
        )
        return next(described, None)

    def _newest(self, pool: PoolId) -> Iterator[ResourceSlice]:
        slices = self._slices.get(pool, {})
        newest = max((one.spec.pool.generation for one in slices.values()), default=0)
        for key in sorted(slices):
            if slices[key].spec.pool.generation == newest:
                yield slices[key]


def pool_of(slice_: ResourceSlice) -> PoolId:
    """Return (driver, pool name) of the slice `slice_`."""
    return (slice_.spec.driver, slice_.spec.pool.name)


def _time_added(taint: DeviceTaint) -> Instant | None:
    return parse_timestamp(taint.time_added) if taint.time_added else None


def _has_taints(one: ResourceSlice) -> bool:
    return any(device.taints for device in one.spec.devices)
