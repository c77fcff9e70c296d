"""KarpenterConfig: the configuration of the simulated Karpenter.

The simulated provider sells the same instance types to every NodePool. The capacity of a type can
depend on the node class of the NodePool, because a node class can have settings for the kubelet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.karpenter.apis import (
    NodeClaim,
    NodeClassReference,
    NodeOverlay,
    NodePool,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.node_dependents import DependentsOfTypes
from fairlead.engine.core.instant import DurationNs, seconds

PROVISION_TIME: Final[DurationNs] = seconds(60)


class KarpenterConfig(Struct, frozen=True, kw_only=True):
    """The configuration of Karpenter in a simulation: pools, instance types and options."""

    pools: tuple[NodePool, ...]
    types: tuple[InstanceType, ...]
    # The instance types for node classes that change the capacity of `types`; all other node
    # classes have `types`.
    class_types: Mapping[NodeClassReference, tuple[InstanceType, ...]] = field(default_factory=dict)
    claims: tuple[NodeClaim, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()
    options: KarpenterOptions = field(default_factory=KarpenterOptions)
    # The usual time in ns from the creation of a NodeClaim until its node is Ready.
    provision_time: DurationNs = PROVISION_TIME
    # Replaces `provision_time` for some NodePools.
    provision_times: Mapping[str, DurationNs] = field(default_factory=dict)
    outages: tuple[CapacityOutage, ...] = ()
    # Whether NodePools and NodeClaims are custom resources of the API server.
    serves_resources: bool = False
    node_info: Mapping[str, str] = field(default_factory=dict)  # the status.nodeInfo of new nodes
    # The labels that new nodes of each zone get from the drivers of volumes.
    place_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The CSINode and the ResourceSlices that are created with a new node.
    dependents: DependentsOfTypes = field(default_factory=DependentsOfTypes)
    # The names of new NodeClaims are generated from serial numbers, which begin after this number.
    # A process that continues with stored objects must set a larger number than before. Otherwise,
    # names repeat.
    first_serial: int = 0
    # The names of the instance types whose prices are estimates; decisions do not read this.
    estimated_prices: frozenset[str] = frozenset()

    def provision_time_of(self, pool: str) -> DurationNs:
        """Return the usual time in ns until the node of a new NodeClaim of `pool` is Ready."""
        return self.provision_times.get(pool, self.provision_time)
