"""DevicePools: the devices in ResourceSlices, and the nodes that can use them.

A driver publishes its devices in pools. A pool consists of one or more ResourceSlices. Only the
slices of the pool's newest generation are used. The pool is complete if the number of these slices
equals resourceSliceCount.

Usable pools with a device that has binding conditions come after all other pools. Apart from this,
pools are sorted by driver and name. The slices of a pool are sorted by name. The taints that
DeviceTaintRules add to a device come after the taints in the slice. The added taints are sorted by
the names of the rules.

upstream: dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go:
GatherPools, buildPool, poolHasBindingConditions;
dynamic-resource-allocation/resourceslice/tracker/tracker.go
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import Device, DeviceTaintRule, Node, NodeSelector, ResourceSlice
from fairlead.engine.state.change_log import ChangeLog

PoolId = tuple[str, str]  # driver, pool
DeviceId = tuple[str, str, str]  # driver, pool, device

EVERYWHERE: Final = ""
_ENCODER: Final = msgspec.msgpack.Encoder()


class PoolDevice(Struct, frozen=True, eq=False):
    """A device of a pool.

    `selector_input` is equal for devices that no CEL selector can tell apart.
    """

    id: DeviceId
    device: Device
    slice: ResourceSlice
    selector_input: bytes


class Pool(Struct, frozen=True, eq=False):
    """The newest generation of a pool.

    `flaw` is the reason why the pool is invalid on every node, "" if there is no such reason. An
    incomplete pool has no flaw.
    """

    id: PoolId
    slices: tuple[tuple[ResourceSlice, tuple[PoolDevice, ...]], ...]
    is_incomplete: bool
    flaw: str


class NodeDevicePool(Struct, frozen=True, eq=False):
    """The devices of `pool` that one node can use.

    `flaw` is the reason why the pool is invalid on the node, "" if the pool is valid.
    """

    pool: Pool
    devices: tuple[PoolDevice, ...]
    flaw: str

    @property
    def is_usable(self) -> bool:
        """Whether the pool is complete and valid, so that its devices may be allocated."""
        return not self.pool.is_incomplete and not self.flaw

    @property
    def has_binding_conditions(self) -> bool:
        """Whether one of the devices has binding conditions."""
        return any(one.device.binding_conditions for one in self.devices)


class DevicePools:
    """All device pools; only `DeviceLedger` changes them.

    `log` contains the names of nodes whose devices were added, removed, allocated or released.
    The entry EVERYWHERE means all nodes.
    """

    def __init__(self) -> None:
        """Start without devices."""
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._local: dict[str, dict[PoolId, int]] = {}  # by node: the number of slices of each pool
        self._wide: dict[PoolId, int] = {}
        self._known: dict[str, tuple[Mapping[str, str], tuple[NodeDevicePool, ...]]] = {}
        self._id_of: dict[str, ResourceSlice] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self.log: ChangeLog[str] = ChangeLog()
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with every entry that is added to `log` from now on."""
        self._listeners.append(listener)

    # --- writes ----------------------------------------------------------------------------

    def put(self, changed: ResourceSlice) -> None:
        """Add or replace a slice."""
        self.remove(changed.key)
        spec, pool = changed.spec, _pool_of(changed)
        self._id_of[changed.key] = changed
        self._slices.setdefault(pool, {})[changed.key] = changed
        reach = self._local.setdefault(spec.node_name, {}) if spec.node_name else self._wide
        reach[pool] = reach.get(pool, 0) + 1
        self._forget(pool, changed)

    def remove(self, name: str) -> None:
        """Remove the slice `name`; do nothing if the slice does not exist."""
        gone = self._id_of.pop(name, None)
        if gone is None:
            return
        spec, pool = gone.spec, _pool_of(gone)
        self._forget(pool, gone)
        del self._slices[pool][name]
        if not self._slices[pool]:
            del self._slices[pool]
        reach = self._local[spec.node_name] if spec.node_name else self._wide
        reach[pool] -= 1
        if not reach[pool]:
            del reach[pool]

    def put_rule(self, rule: DeviceTaintRule) -> list[ResourceSlice]:
        """Add or replace a DeviceTaintRule; return the slices whose taints may have changed."""
        before = self._rules.get(rule.key)
        if before is not None and before.spec == rule.spec:
            return []
        self._rules[rule.key] = rule
        return self._forget_tainted([rule] if before is None else [before, rule])

    def remove_rule(self, rule: DeviceTaintRule) -> list[ResourceSlice]:
        """Remove a DeviceTaintRule; return the slices whose taints may have changed."""
        return self._forget_tainted([self._rules.pop(rule.key, rule)])

    def _forget_tainted(self, rules: list[DeviceTaintRule]) -> list[ResourceSlice]:
        touched = [
            one
            for pool in self._slices
            if any(_selects_pool(rule, pool) for rule in rules)
            for one in self._slices[pool].values()
        ]
        for one in touched:
            self._forget(_pool_of(one), one)
        return touched

    def _forget(self, pool: PoolId, touched: ResourceSlice) -> None:
        """Drop the cached data about `pool` and about nodes that may use `pool`; log the change.

        `touched` is the changed slice.
        """
        self._pools.pop(pool, None)
        if not touched.spec.node_name or pool in self._wide:
            self._known.clear()
        else:
            for one in self._slices[pool].values():
                self._known.pop(one.spec.node_name, None)
        self.note(pool)

    def note(self, pool: PoolId) -> None:
        """Record in `log` that the devices of `pool` changed."""
        if pool in self._wide:
            self.note_node(EVERYWHERE)
            return
        for one in self._slices.get(pool, {}).values():
            self.note_node(one.spec.node_name)

    def note_node(self, name: str) -> None:
        """Record in `log` that the devices of the node `name` changed, and call the listeners.

        If `name` is EVERYWHERE, the devices of all nodes changed.
        """
        self.log.append(name)
        for listener in self._listeners:
            listener(name)

    # --- queries ---------------------------------------------------------------------------

    def slices_of(self, node: str) -> list[ResourceSlice]:
        """Return the slices whose nodeName is `node`, sorted."""
        pools = sorted(self._local.get(node, ()))
        slices = (self._slices[pool] for pool in pools)
        return [
            one for some in slices for _, one in sorted(some.items()) if one.spec.node_name == node
        ]

    def on(self, node: Node) -> tuple[NodeDevicePool, ...]:
        """Return the pools that have devices for `node`.

        The result is the same object until a cached pool changes, or `node` gets other labels.
        """
        name, labels = node.metadata.name, node.metadata.labels
        known = self._known.get(name)
        if known is not None and known[0] == labels:
            return known[1]
        ids = sorted({**self._local.get(name, {}), **self._wide})
        pools = [one for pool in ids if (one := self._seen_from(pool, node)) is not None]
        pools.sort(key=_binding_conditions_last)
        found = tuple(pools)
        self._known[name] = (labels, found)
        return found

    def _seen_from(self, pool_id: PoolId, node: Node) -> NodeDevicePool | None:
        pool = self._pools.get(pool_id)
        if pool is None:
            rules = [self._rules[name] for name in sorted(self._rules)]
            slices = {key: _tainted(one, rules) for key, one in self._slices[pool_id].items()}
            pool = self._pools[pool_id] = _compiled(pool_id, slices)
        reached = [devices for one, devices in pool.slices if _reaches(one, devices, node)]
        if not reached:
            return None
        devices = tuple(device for those in reached for device in those)
        return NodeDevicePool(pool, devices, pool.flaw or _flaw_of_names(pool, devices))


def _pool_of(one: ResourceSlice) -> PoolId:
    return (one.spec.driver, one.spec.pool.name)


def rule_selects(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Return whether `rule` taints `device`, a tuple (driver, pool, name).

    upstream: pkg/controller/devicetainteviction/device_taint_eviction.go: ruleMatchesDevice
    """
    selector = rule.spec.device_selector
    return _selects_pool(rule, device[:2]) and (
        selector is not None and selector.device in (None, device[2])
    )


def _selects_pool(rule: DeviceTaintRule, pool: PoolId) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in (None, pool[0]) and selector.pool in (None, pool[1])


def _tainted(one: ResourceSlice, rules: list[DeviceTaintRule]) -> ResourceSlice:
    """Return the slice `one` with the taints that `rules` add to its devices.

    If no rule selects the pool of the slice, the result is `one` itself.
    """
    pool = _pool_of(one)
    own = [rule for rule in rules if _selects_pool(rule, pool)]
    if not own:
        return one
    devices = tuple(
        replace(
            device,
            taints=(
                *device.taints,
                *(rule.spec.taint for rule in own if rule_selects(rule, (*pool, device.name))),
            ),
        )
        for device in one.spec.devices
    )
    return replace(one, spec=replace(one.spec, devices=devices))


def _compiled(pool: PoolId, slices: Mapping[str, ResourceSlice]) -> Pool:
    newest = max(one.spec.pool.generation for one in slices.values())
    kept = [slices[key] for key in sorted(slices)]
    kept = [one for one in kept if one.spec.pool.generation == newest]
    is_incomplete = len(kept) != kept[0].spec.pool.resource_slice_count
    return Pool(
        id=pool,
        slices=tuple((one, _devices_of(one, pool)) for one in kept),
        is_incomplete=is_incomplete,
        flaw="" if is_incomplete else _flaw_of_counters(kept),
    )


def _binding_conditions_last(one: NodeDevicePool) -> bool:
    return one.is_usable and one.has_binding_conditions


def _flaw_of_names(pool: Pool, devices: tuple[PoolDevice, ...]) -> str:
    """Return why a pool is invalid on a node that can use `devices`; "" if it is valid.

    An incomplete pool counts as valid.

    upstream: validateDeviceNames
    """
    if pool.is_incomplete or len({one.id for one in devices}) == len(devices):
        return ""
    names = [one.device.name for one in devices]
    return f"duplicate device name {next(name for name in names if names.count(name) > 1)}"


def _flaw_of_counters(slices: list[ResourceSlice]) -> str:
    """Return why the counters in a complete pool's `slices` are invalid; "" if they are valid.

    upstream: getAndValidateCounterSets, validateDeviceCounterConsumption
    """
    counters: dict[str, Container[str]] = {}
    for one in slices:
        for defined in one.spec.shared_counters:
            if defined.name in counters:
                return f"duplicate counter set name {defined.name}"
            counters[defined.name] = defined.counters
    consumptions = (
        consumed for one in slices for d in one.spec.devices for consumed in d.consumes_counters
    )
    for consumed in consumptions:
        known = counters.get(consumed.counter_set)
        if known is None:
            return f"counter set {consumed.counter_set} not found"
        missing = next((name for name in consumed.counters if name not in known), None)
        if missing is not None:
            return f"counter {missing} not found in counter set {consumed.counter_set}"
    return ""


def _devices_of(one: ResourceSlice, pool: PoolId) -> tuple[PoolDevice, ...]:
    return tuple(
        PoolDevice(
            id=(*pool, device.name),
            device=device,
            slice=one,
            selector_input=_ENCODER.encode(
                (
                    pool[0],
                    device.attributes,
                    device.capacity,
                    device.allow_multiple_allocations,
                )
            ),
        )
        for device in one.spec.devices
    )


def _reaches(one: ResourceSlice, devices: tuple[PoolDevice, ...], node: Node) -> bool:
    """Return whether `node` can use the slice `one`, which contains `devices`."""
    spec = one.spec
    if spec.shared_counters and not spec.devices:
        return spec.node_name in ("", node.metadata.name)
    if spec.per_device_node_selection:
        return any(is_usable_on(device, node) for device in devices)
    return _matches(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)


def is_usable_on(device: PoolDevice, node: Node) -> bool:
    """Return whether `node` can use `device`, given that it can use the device's slice."""
    if not device.slice.spec.per_device_node_selection:
        return True
    spec = device.device
    return _matches(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)


def _matches(node: Node, name: str, selector: NodeSelector | None, *, all_nodes: bool) -> bool:
    if name:
        return name == node.metadata.name
    if all_nodes:
        return True
    meta = node.metadata
    return selector is not None and node_selector_matches(selector, meta.labels, meta.name)
