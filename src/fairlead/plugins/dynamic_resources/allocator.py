"""Allocator: what a node has for a pod's claims, found out once as long as nothing changes.

The answer depends on what the claims ask for, on the pools in reach and on which of their devices
are taken, so it is kept per node until one of these is another. Claims that ask for the same share
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fairlead.api.objects import Allocation, DeviceClass, Node, ResourceClaim
from fairlead.core.status import Status, unresolvable
from fairlead.plugins.dynamic_resources.allocation_result import allocation_of
from fairlead.plugins.dynamic_resources.device_request import ClaimWishes, wishes_of
from fairlead.plugins.dynamic_resources.device_search import DeviceSearch, SearchTooLongError
from fairlead.plugins.dynamic_resources.device_selectors import DeviceSelectors
from fairlead.state.cluster import Cluster
from fairlead.state.device_pools import NodePool

NOT_ENOUGH: Final = "cannot allocate all claims"
TOO_LONG: Final = unresolvable("timed out trying to allocate devices")
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")
_KINDS_MAX: Final = 256

Allocations = tuple[Allocation, ...]
_ENCODER: Final = msgspec.msgpack.Encoder()


@dataclass(slots=True)
class _Answer:
    """What was found with `pools` in reach, whose devices were at `versions`."""

    pools: tuple[NodePool, ...]
    versions: tuple[int, ...]
    found: Allocations | Status


class Demand:
    """Some claims that are to be allocated together."""

    __slots__ = ("answers", "wishes")

    def __init__(self, wishes: tuple[ClaimWishes, ...], answers: dict[str, _Answer]) -> None:
        """`answers` by node are shared by demands for the same."""
        self.wishes = wishes
        self.answers = answers


class Allocator:
    """Reads the ledger of `cluster`; changes nothing."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing has been asked."""
        self._ledger = cluster.devices
        self._related = cluster.related
        self._selectors = DeviceSelectors()
        self._answers: dict[bytes, dict[str, _Answer]] = {}
        self._class_version = -1

    def find_class(self, name: str) -> DeviceClass | None:
        """The device class called `name`."""
        return self._related.get(DeviceClass, name)

    def demand(self, claims: Sequence[ResourceClaim]) -> Demand:
        """What `claims` ask for. Raises AllocationError."""
        wishes = tuple(wishes_of(claim, self.find_class) for claim in claims)
        if self._class_version != self._ledger.class_version or len(self._answers) >= _KINDS_MAX:
            self._class_version = self._ledger.class_version
            self._answers.clear()
        key = _ENCODER.encode([claim.spec for claim in claims])
        return Demand(wishes, self._answers.setdefault(key, {}))

    def allocate(self, demand: Demand, node: Node) -> Allocations | Status:
        """An allocation for each claim, or why there is none. Raises AllocationError."""
        pools = self._ledger.pools.on(node)
        version_of = self._ledger.version_of
        versions = tuple([version_of(one.pool.id) for one in pools])
        answer = demand.answers.get(node.metadata.name)
        if answer is None or answer.pools is not pools or answer.versions != versions:
            answer = _Answer(pools, versions, self._search(demand, node, pools))
            demand.answers[node.metadata.name] = answer
        return answer.found

    def _search(
        self, demand: Demand, node: Node, pools: tuple[NodePool, ...]
    ) -> Allocations | Status:
        search = DeviceSearch(demand.wishes, pools, node, self._ledger, self._selectors)
        try:
            taken = search.run()
        except SearchTooLongError:
            return TOO_LONG
        if taken is not None:
            pairs = zip(demand.wishes, taken, strict=True)
            return tuple(allocation_of(claim, devices) for claim, devices in pairs)
        if any(one.pool.flaw for one in pools):
            return INVALID_POOLS
        return unresolvable(NOT_ENOUGH, *search.left_aside)
