"""NodeOverlays: changes of the prices and capacity of a provider's instance types.

Overlays are applied by descending weight. An overlay changes the offerings and resources that it
selects, except those that an overlay with a higher weight has already changed. If two overlays of
the same weight change the same value, they conflict. Of the two, the overlay whose name comes first
in alphabetical order is ignored for all pools.

upstream: pkg/controllers/nodeoverlay/{controller,store}.go, pkg/apis/v1alpha1/nodeoverlay.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.objects import NodeSelectorRequirement
from fairlead.engine.autoscaling.karpenter.apis import NodeOverlay, NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.pod_validation import (
    requirement_problems,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import NOT_IN, requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    combined,
    label_requirements,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts

SUCCEEDED = "True/ValidationSucceeded"
CONFLICT = "False/Conflict"
INVALID = "False/RuntimeValidation"
_RESTRICTED_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage", "pods"))
_TABLES_MAX: Final = 256

Target = tuple[str, str, str]
"""A NodePool, an instance type, and an offering (zone and capacity type) or a resource."""


class _Changes(Struct):
    """The overlays that change each `Target` (an offering or a resource of an instance type).

    `first` maps a target to the overlay that was applied to it first. `latest_weight` maps a
    target to the weight of the overlay that was applied to it last.
    """

    latest_weight: dict[Target, int] = field(default_factory=dict)
    first: dict[Target, NodeOverlay] = field(default_factory=dict)

    def conflicts(self, targets: Iterable[Target], weight: int) -> bool:
        return any(self.latest_weight.get(one) == weight for one in targets)

    def take(self, targets: Iterable[Target], overlay: NodeOverlay, weight: int) -> None:
        for one in targets:
            self.latest_weight[one] = weight
            self.first.setdefault(one, overlay)


class OverlaidTypes:
    """The instance types of every NodePool, with the overlays of the cluster applied."""

    def __init__(
        self,
        cluster: KarpenterCluster,
        types_of: Callable[[NodePool], InstanceTypeTable],
        options: KarpenterOptions,
    ) -> None:
        """Create the tables; `types_of` returns a NodePool's instance types without overlays.

        If the feature gate NodeOverlay is not set, overlays have no effect.
        """
        self._cluster = cluster
        self._types_of = types_of
        self._options = options
        self._seen: tuple[object, ...] | None = None
        self._prices = _Changes()
        self._capacity = _Changes()
        self._status: dict[str, str] = {}
        self._tables: dict[tuple[str, InstanceTypeTable], InstanceTypeTable] = {}

    def validation(self) -> dict[str, str]:
        """Return {overlay name: `status/reason` of the overlay's condition ValidationSucceeded}."""
        self._evaluate()
        return dict(self._status)

    def table(self, pool: NodePool) -> InstanceTypeTable:
        """Return the types that the provider sells to `pool`, with overlays applied."""
        plain = self._types_of(pool)
        if not self._options.node_overlay or not self._cluster.overlays:
            return plain
        self._evaluate()
        key = pool.name, plain
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _TABLES_MAX:
                self._tables.clear()
            types = [self._overlaid(pool, one) for one in plain.types]
            found = self._tables[key] = InstanceTypeTable(types, plain.well_known)
        return found

    def _evaluate(self) -> None:
        pools = self._cluster.node_pools
        seen = (*self._cluster.overlays.values(), *pools.values())
        known = self._seen
        if known is not None and len(known) == len(seen) and all(map(is_, known, seen)):
            return
        self._seen = seen
        self._prices, self._capacity = _Changes(), _Changes()
        self._status.clear()
        self._tables.clear()
        overlays = sorted(
            self._cluster.overlays.values(), key=lambda one: one.metadata.name, reverse=True
        )
        for overlay in sorted(overlays, key=lambda one: -(one.spec.weight or 0)):
            self._status[overlay.metadata.name] = self._apply(overlay)

    def _apply(self, overlay: NodeOverlay) -> str:
        if _is_invalid(overlay, self._options):
            return INVALID
        weight = overlay.spec.weight or 0
        prices = list(self._price_targets(overlay))
        capacity = list(self._capacity_targets(overlay))
        if self._prices.conflicts(prices, weight) or self._capacity.conflicts(capacity, weight):
            return CONFLICT
        self._prices.take(prices, overlay, weight)
        self._capacity.take(capacity, overlay, weight)
        return SUCCEEDED

    def _selected(
        self, overlay: NodeOverlay
    ) -> Iterator[tuple[NodePool, InstanceType, list[Offering]]]:
        """Yield (NodePool, type, selected offerings) for each type that the overlay selects."""
        # upstream: controller.go:getOverlaidOfferings
        required = combined(
            requirement(one.key, one.operator, one.values) for one in overlay.spec.requirements
        )
        known = self._options.well_known_labels
        for pool in self._cluster.node_pools.values():
            labels = label_requirements(
                {**pool.spec.template.metadata.labels, NODE_POOL: pool.name}
            )
            for instance_type in self._types_of(pool).types:
                own = labels.with_added(instance_type.requirements)
                if not own.compatible(required):
                    continue
                offerings = [
                    one
                    for one in instance_type.offerings
                    if required.compatible(one.requirements, known)
                ]
                if offerings:
                    yield pool, instance_type, offerings

    def _price_targets(self, overlay: NodeOverlay) -> Iterator[Target]:
        if overlay.spec.price is None and overlay.spec.price_adjustment is None:
            return
        for pool, instance_type, offerings in self._selected(overlay):
            for one in offerings:
                yield pool.name, instance_type.name, _offering_key(one)

    def _capacity_targets(self, overlay: NodeOverlay) -> Iterator[Target]:
        if not overlay.spec.capacity:
            return
        for pool, instance_type, _ in self._selected(overlay):
            for name in overlay.spec.capacity:
                yield pool.name, instance_type.name, name

    def _overlaid(self, pool: NodePool, plain: InstanceType) -> InstanceType:
        offerings = tuple(self._repriced(pool, plain, one) for one in plain.offerings)
        added = self._added_capacity(pool, plain)
        if not added and offerings == plain.offerings:
            return plain
        return replace(
            plain,
            offerings=offerings,
            capacity={**plain.capacity, **added},
            capacity_overlaid=bool(added),
        )

    def _repriced(self, pool: NodePool, plain: InstanceType, one: Offering) -> Offering:
        overlay = self._prices.first.get((pool.name, plain.name, _offering_key(one)))
        if overlay is None:
            return one
        return replace(one, price=adjusted_price(one.price, overlay), price_overlaid=True)

    def _added_capacity(self, pool: NodePool, plain: InstanceType) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for (pool_name, type_name, resource), overlay in self._capacity.first.items():
            if (pool_name, type_name) == (pool.name, plain.name):
                found[resource] = amounts({resource: overlay.spec.capacity[resource]})[resource]
        return found


def _is_invalid(overlay: NodeOverlay, options: KarpenterOptions) -> bool:
    """Return whether the overlay has an invalid requirement or changes a restricted resource."""
    # upstream: nodeoverlay_validation.go:RuntimeValidate
    if not _RESTRICTED_RESOURCES.isdisjoint(overlay.spec.capacity or ()):
        return True
    for one in overlay.spec.requirements:
        stated = NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values)
        if any(requirement_problems(stated, options)):
            return True
        if one.operator == NOT_IN and not one.values:
            return True
    return False


def adjusted_price(price: float, overlay: NodeOverlay) -> float:
    """Return the price that `overlay` sets, or `price` with the overlay's adjustment applied."""
    # upstream: pkg/cloudprovider/types.go:AdjustedPrice
    if overlay.spec.price is not None:
        return float(overlay.spec.price)
    change = overlay.spec.price_adjustment or "+0"
    if change.endswith("%"):
        return max(0.0, price * (1 + float(change[:-1]) / 100))
    return max(0.0, price + float(change))


def _offering_key(one: Offering) -> str:
    return f"{one.zone}|{one.capacity_type}|{one.reservation_id}"
