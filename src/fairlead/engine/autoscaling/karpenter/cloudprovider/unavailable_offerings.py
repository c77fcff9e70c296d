"""UnavailableOfferings: records the offerings that a provider could not deliver.

A launch that fails for lack of capacity marks the offerings that it tried. For three minutes the
provider lists these offerings as unavailable, so that provisioning passes choose other offerings.

upstream: karpenter-provider-aws pkg/cache/unavailableofferings.go, cache.go:UnavailableOfferingsTTL
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.autoscaling.karpenter.apis import NodeClassReference
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds

UNAVAILABLE_NS: Final[DurationNs] = seconds(180)
_TABLES_MAX: Final = 16

OfferingKey = tuple[str, str, str]
"""Instance type, zone and capacity type."""


class _Tables(Struct, frozen=True, eq=False):
    """The instance types by node class.

    A node class that is not a key of `by_class` has the types `usual`.
    """

    usual: InstanceTypeTable
    by_class: Mapping[NodeClassReference, InstanceTypeTable]


class UnavailableOfferings:
    """Records unavailable offerings.

    `table` and `table_of` return the instance types, with these offerings marked.
    """

    def __init__(
        self,
        types: Sequence[InstanceType],
        well_known: frozenset[str],
        class_types: Mapping[NodeClassReference, Sequence[InstanceType]] | None = None,
    ) -> None:
        """Start with all offerings of `types` available.

        Some node classes change the capacity of `types`. `class_types` maps these node classes to
        the changed types.
        """
        self._types = types
        self._class_types = class_types or {}
        self._well_known = well_known
        self._until: dict[OfferingKey, Instant] = {}
        self._temporary: set[OfferingKey] = set()
        self._now = self._made(frozenset())
        # A cache of tables, because the same set of offerings is often unavailable again. The most
        # recently used table comes last.
        self._tables: dict[frozenset[OfferingKey], _Tables] = {frozenset(): self._now}

    @property
    def table(self) -> InstanceTypeTable:
        """The instance types for node classes that do not change the capacity of types."""
        return self._now.usual

    def table_of(self, node_class: NodeClassReference) -> InstanceTypeTable:
        """Return the instance types for NodePools and NodeClaims that name `node_class`."""
        return self._now.by_class.get(node_class, self._now.usual)

    @property
    def tables_kept(self) -> int:
        """The number of cached tables, one for each set of unavailable offerings."""
        return len(self._tables)

    @property
    def has_temporary(self) -> bool:
        """Whether the provider will be able to deliver any of the unavailable offerings later."""
        return bool(self._temporary)

    def mark(
        self,
        instance_type: InstanceType,
        offering: Offering,
        now: Instant,
        *,
        is_temporary: bool = False,
    ) -> None:
        """Mark `offering` as unavailable for three minutes.

        The tables show the mark only after a call of `publish`. Set `is_temporary` if the provider
        will be able to deliver the offering again. `is_temporary` affects only `has_temporary`, not
        the three minutes.
        """
        key = _key(instance_type, offering)
        self._until[key] = now + UNAVAILABLE_NS
        if is_temporary:
            self._temporary.add(key)
        else:
            self._temporary.discard(key)

    def next_expiry(self) -> Instant | None:
        """Return the time at which the next offering becomes available again.

        Returns None if all offerings are available.
        """
        return min(self._until.values(), default=None)

    def expire(self, now: Instant) -> bool:
        """Make each offering available again if its three minutes have passed at `now`.

        Returns whether any offering has become available.
        """
        over = [key for key, until in self._until.items() if until <= now]
        for key in over:
            del self._until[key]
        self._temporary.difference_update(over)
        if over:
            self.publish()
        return bool(over)

    def publish(self) -> None:
        """Update the tables, so that they show the offerings that are unavailable now."""
        unavailable = frozenset(self._until)
        found = self._tables.pop(unavailable, None)
        self._tables[unavailable] = self._now = found or self._made(unavailable)
        if len(self._tables) > _TABLES_MAX:
            del self._tables[next(iter(self._tables))]

    def _made(self, unavailable: frozenset[OfferingKey]) -> _Tables:
        """Return the tables in which the offerings `unavailable` are marked."""

        def table(types: Sequence[InstanceType]) -> InstanceTypeTable:
            marked = [_without(one, unavailable) for one in types] if unavailable else types
            return InstanceTypeTable(marked, self._well_known)

        by_class = {ref: table(types) for ref, types in self._class_types.items()}
        return _Tables(table(self._types), by_class)


def _key(instance_type: InstanceType, offering: Offering) -> OfferingKey:
    return instance_type.name, offering.zone, offering.capacity_type


def _without(one: InstanceType, unavailable: frozenset[OfferingKey]) -> InstanceType:
    offerings = tuple(
        replace(offering, available=False) if _key(one, offering) in unavailable else offering
        for offering in one.offerings
    )
    return replace(one, offerings=offerings)
