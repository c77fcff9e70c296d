"""NodeDevices: the devices of a node, and the devices that its DaemonSet pods use.

upstream: simulator/dynamicresources/utils/sanitize.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import (
    ClaimAllocation,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceClaim,
    ResourceSlice,
)


class NodeDevices(Struct, frozen=True):
    """The ResourceSlices of one node, and the claims of the node's DaemonSet pods.

    Each claim in `claims` was generated for a DaemonSet pod, and holds devices in `slices`.
    """

    slices: tuple[ResourceSlice, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()

    def copies(self, node: str) -> Iterator[ResourceSlice | ResourceClaim]:
        """Yield copies of the slices and claims for the new node `node`.

        The names of the copies, and of the pools of the slices, end with the node's name.
        """
        for one in self.slices:
            pool = replace(one.spec.pool, name=f"{one.spec.pool.name}-{node}")
            metadata = replace(one.metadata, name=f"{one.metadata.name}-{node}")
            yield replace(one, metadata=metadata, spec=replace(one.spec, node_name=node, pool=pool))
        for claim in self.claims:
            allocation = claim.status.allocation
            assert allocation is not None
            meta = claim.metadata
            metadata = replace(meta, name=f"{meta.name}-{node}", uid=f"{meta.uid}-{node}")
            status = replace(claim.status, allocation=_on_node(allocation, node))
            yield replace(claim, metadata=metadata, status=status)


NO_DEVICES: Final = NodeDevices()


def node_devices(slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]) -> NodeDevices:
    """Return the devices of a node that has `slices`, and whose DaemonSet pods use `claims`.

    The result leaves out claims without an allocation and claims with devices of other nodes. If a
    claim has devices of another node, upstream instead skips the whole iteration of the autoscaler
    loop.
    """
    slices = tuple(slices)
    pools = {(one.spec.driver, one.spec.pool.name) for one in slices}
    return NodeDevices(slices, tuple(claim for claim in claims if _is_within(claim, pools)))


def _is_within(claim: ResourceClaim, pools: set[tuple[str, str]]) -> bool:
    """Return whether the claim has an allocation, and all its devices are from `pools`.

    `pools` are pairs (driver, pool name).
    """
    allocation = claim.status.allocation
    return allocation is not None and all(
        (one.driver, one.pool) in pools for one in allocation.devices.results
    )


def _on_node(allocation: ClaimAllocation, node: str) -> ClaimAllocation:
    """Return a copy of `allocation`, with the same devices in the pools of the new node `node`."""
    results = tuple(replace(one, pool=f"{one.pool}-{node}") for one in allocation.devices.results)
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
    devices = replace(allocation.devices, results=results)
    return replace(allocation, devices=devices, node_selector=selector)
