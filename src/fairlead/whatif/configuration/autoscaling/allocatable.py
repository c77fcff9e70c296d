"""The resources that are allocatable on new nodes of an instance type.

A file of instance types states the sizes of machines. The kubelet keeps a part of each machine for
the system, so pods cannot use the whole machine. The existing nodes show how large this part is:

    node m-1, type m:      capacity 4 cores, allocatable 3920m, so 98 % are allocatable
    type l, 8 cores        of 8 cores, 7840m are allocatable

The share for new nodes of a type comes from the newest existing node of the type. If there is no
such node, it comes from the newest of all existing nodes. Nodes in service are preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import Node, QuantityText, ResourceList
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.snapshot.node_pool import copy_order

_SCALED: Final = ("cpu", "memory", "ephemeral-storage")


class AllocatableShares:
    """The part of a machine that is allocatable, as the existing nodes show it."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """`nodes` are the existing nodes. Those without allocatable amounts are ignored."""
        self._newest: dict[str, Node] = {}  # by instance type
        self._default: Node | None = None
        for node in sorted((one for one in nodes if one.status.allocatable), key=copy_order):
            self._default = self._newest[node.metadata.labels.get(INSTANCE_TYPE, "")] = node

    def of(self, name: str, capacity: ResourceList) -> ResourceList:
        """Return the allocatable amounts of a new node of the instance type `name`.

        The allocatable share of CPU, memory and ephemeral storage is that of an existing node (see
        the docstring of the module). Pods, ephemeral storage and huge pages that `capacity` does
        not state have the amounts of this node. Without nodes, all of `capacity` is allocatable.
        """
        like = self._newest.get(name, self._default)
        if like is None:
            return capacity
        have: ResourceList = dict(like.status.allocatable)
        whole: ResourceList = dict(like.status.capacity or have)
        found: ResourceList = {
            name: amount
            for name, amount in have.items()
            if name in ("pods", "ephemeral-storage") or name.startswith("hugepages-")
        }
        for resource, amount in capacity.items():
            found[resource] = amount
            # A node without capacity, such as one that has just started, shows no share.
            most = _amount(resource, whole.get(resource, "0"))
            if resource in _SCALED and resource in have and most:
                found[resource] = _scaled(resource, amount, have[resource], most)
        return found

    def notes(self, types: Iterable[StatedType]) -> Iterator[str]:
        """Yield a note about what is assumed for the types of which there is no node.

        There is no note if existing nodes keep nothing for the system.
        """
        like = self._default
        if like is None or all(one.name in self._newest for one in types):
            return
        have, whole = like.status.allocatable, like.status.capacity
        shares = {
            name: _amount(name, have[name]) / _amount(name, whole[name])
            for name in ("cpu", "memory")
            if name in have and name in whole and _amount(name, whole[name])
        }
        if any(share < 1 for share in shares.values()):
            amounts = " and ".join(f"{share:.1%} of the {name}" for name, share in shares.items())
            yield (
                "Some instance types have no existing node. Their new nodes are assumed to have "
                f"the same allocatable shares as node {like.metadata.name}: {amounts}."
            )


def _scaled(name: str, amount: QuantityText, part: QuantityText, whole: int) -> str:
    scaled = _amount(name, amount) * min(_amount(name, part), whole) // whole
    return f"{scaled}m" if name == "cpu" else str(scaled)


def _amount(name: str, amount: QuantityText) -> int:
    return milli_value(amount) if name == "cpu" else whole_value(amount)


def with_allocatable(types: Iterable[StatedType], shares: AllocatableShares) -> list[StatedType]:
    """Return `types` with the amounts that are allocatable on their new nodes."""
    return [replace(one, allocatable=shares.of(one.name, one.capacity)) for one in types]
