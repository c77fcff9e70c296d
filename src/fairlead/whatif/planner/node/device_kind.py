"""DeviceKinds: groups of nodes with equal devices; copies of the nodes of a group are equal, too.

Nodes with equal labels and sizes can have different devices (ResourceSlices). For example, a driver
has found GPUs on only one of two machines, and their labels do not show the difference.

Two devices are different only if a claim can distinguish them. A claim can read the attributes and
capacities whose name occurs in a CEL expression, and the capacities that a claim requests. Other
attributes, such as serial numbers, do not count, because their values can differ between equal
machines. Attributes that only constraints compare (matchAttribute, distinctAttribute) do not count
for the same reason. An example is the id of a common parent device. Taints do not count, because
the devices of a new node have none.

    expression: device.attributes["gpu.example.com"].model == "a"

    node   devices                                     kind
    n1     model "a", uuid "1"; model "a", uuid "2"    2 of model "a"
    n2     model "a", uuid "3"; model "a", uuid "4"    2 of model "a", as n1
    n3     model "b", uuid "5"; model "b", uuid "6"    2 of model "b"
    n4     none                                        no devices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from fairlead.api.objects import (
    Device,
    DeviceClass,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from fairlead.api.text.count import counted
from fairlead.whatif.planner.cluster_model import ClusterModel

Value = TypeVar("Value")


class DeviceKinds:
    """Compares the devices of the nodes of the snapshot that `model` was made of."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._is_read: dict[str, bool] = {}

    def of(self, node: str) -> Hashable:
        """Return a key that two nodes share if no claim can distinguish their devices."""
        return frozenset(
            Counter(
                (one.spec.driver, self._traits(device))
                for one in self._slices(node)
                for device in one.spec.devices
            ).items()
        )

    def in_words(self, node: str) -> str:
        """Return the number of devices of `node` by driver, such as `4 gpu.example.com devices`."""
        counts: Counter[str] = Counter()
        for one in self._slices(node):
            counts[one.spec.driver] += len(one.spec.devices)
        return ", ".join(
            counted(count, f"{driver} device") for driver, count in sorted(counts.items()) if count
        )

    def _slices(self, node: str) -> Iterator[ResourceSlice]:
        found = self._model.dependents(node)
        return (one for one in found if isinstance(one, ResourceSlice))

    def _traits(self, device: Device) -> Hashable:
        return (
            frozenset(self._read(device.attributes)),
            frozenset((name, str(one.value)) for name, one in self._read(device.capacity)),
            device.allow_multiple_allocations,
            bool(device.consumes_counters),
        )

    def _read(self, named: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
        """Yield the entries of `named` (attributes or capacities) that claims can read."""
        for name, value in named.items():
            known = self._is_read.get(name)
            if known is None:
                texts, requested = self._reading
                last = name.rpartition("/")[2]
                known = name in requested or last in requested or last in texts
                self._is_read[name] = known
            if known:
                yield name, value

    @cached_property
    def _reading(self) -> tuple[str, frozenset[str]]:
        """The text of all CEL expressions that select devices, and the requested capacities."""
        related = self._model.cluster.related
        selectors: list[DeviceSelector] = []
        requested: set[str] = set()
        for each in related.all_of(DeviceClass):
            selectors += each.spec.selectors
        for claim in related.all_of(ResourceClaim):
            for exact in _exact_requests(claim):
                selectors += exact.selectors
                requested.update(exact.capacity.requests if exact.capacity else ())
        expressions = {one.cel.expression: None for one in selectors if one.cel is not None}
        return "\n".join(expressions), frozenset(requested)


def _exact_requests(claim: ResourceClaim) -> Iterable[ExactDeviceRequest]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available
