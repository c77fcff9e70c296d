"""InstanceTypeTable: a NodePool's instance types as columns; each query returns a mask.

A mask is a boolean array over the types. Requirements are compared once per distinct value. For
example, all types with `arch In [amd64]` have the same code in the column of the label `arch`. A
code is a small integer. So a query over 400 types needs only a few comparisons and one array
lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    Amounts,
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.labels import RESERVED
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements

Mask = NDArray[np.bool_]


class _Column:
    """A column for one label: a code for the requirement that each subject has on the label.

    A subject is an instance type or an offering. Equal requirements have the same code.
    """

    def __init__(self, requirements: Iterable[LabelRequirement | None]) -> None:
        """Encode `requirements`, one for each type or offering; None means no requirement."""
        codes: dict[LabelRequirement | None, int] = {}
        rows = [codes.setdefault(one, len(codes)) for one in requirements]
        self._codes = np.array(rows, dtype=np.int64)
        self._distinct = list(codes)
        self._masks: dict[LabelRequirement | None, Mask] = {}

    def mask(
        self,
        requirement: LabelRequirement | None,
        agrees: Callable[[LabelRequirement, LabelRequirement | None], bool],
    ) -> Mask:
        """Return a mask of the subjects (types or offerings) that agree with `requirement`.

        A subject agrees if it has no requirement on the column's label. Any other subject agrees if
        `agrees(requirement of the subject, requirement)` returns True.
        """
        found = self._masks.get(requirement)
        if found is None:
            matches = [one is None or agrees(one, requirement) for one in self._distinct]
            found = self._masks[requirement] = np.array(matches, dtype=np.bool_)[self._codes]
        return found


class InstanceTypeTable:
    """Instance types in the provider's order; queries return masks with one entry for each type."""

    def __init__(self, types: Sequence[InstanceType], well_known: frozenset[str]) -> None:
        """Index `types`.

        `well_known` are the keys of labels that nodes can have even if their type does not list the
        labels.
        """
        self.types = tuple(types)
        self.well_known = well_known
        self.index = {one.name: i for i, one in enumerate(self.types)}
        self.all: Mask = np.ones(len(self.types), dtype=np.bool_)
        names = dict.fromkeys(name for one in types for name in (*one.capacity, *one.allocatable))
        self._resources = {name: column for column, name in enumerate(names)}
        self.allocatable = self._amounts([one.allocatable for one in self.types])
        self.capacity = self._amounts([one.capacity for one in self.types])
        self._nonnegative: Mask = np.asarray((self.allocatable >= 0).all(axis=1), dtype=np.bool_)
        keys = dict.fromkeys(key for one in types for key in one.requirements.labels)
        self._labels = {
            key: _Column(one.requirements.find(key) for one in self.types) for key in keys
        }
        self._offerings: list[Offering] = []
        self._offering_type: NDArray[np.int64] = np.zeros(0, np.int64)
        self._offering_available: Mask = np.zeros(0, np.bool_)
        self._offering_labels: dict[str, _Column] = {}
        self._index_offerings()
        self.has_reserved = any(one.capacity_type == RESERVED for one in self._offerings)
        self._compatible: dict[Requirements, Mask] = {}
        self._offered: dict[Requirements, Mask] = {}
        self._orders: dict[Requirements, list[float]] = {}

    def _amounts(self, rows: list[Amounts]) -> NDArray[np.int64]:
        table = [[row.get(name, 0) for name in self._resources] for row in rows]
        return np.array(table, dtype=np.int64).reshape(len(rows), len(self._resources))

    def _index_offerings(self) -> None:
        pairs = [(i, one) for i, t in enumerate(self.types) for one in t.offerings]
        self._offerings = [one for _, one in pairs]
        self._offering_type = np.array([i for i, _ in pairs], dtype=np.int64)
        self._offering_available = np.array([one.available for _, one in pairs], dtype=np.bool_)
        keys = dict.fromkeys(key for _, one in pairs for key in one.requirements.labels)
        self._offering_labels = {
            key: _Column(one.requirements.find(key) for _, one in pairs) for key in keys
        }

    def column(self, resource: str) -> int | None:
        """Return the index of the column of `resource` in `allocatable` and `capacity`.

        Returns None if no type has the resource.
        """
        return self._resources.get(resource)

    def compatible(self, requirements: Requirements) -> Mask:
        """Return a mask of the types whose own requirements intersect `requirements`."""
        found = self._compatible.get(requirements)
        if found is None:
            found = self.all.copy()
            for one in requirements:
                column = self._labels.get(one.key)
                if column is not None:
                    found &= column.mask(one, _intersects)
            self._compatible[requirements] = found
        return found

    def offered(self, requirements: Requirements) -> Mask:
        """Return a mask of the types with an available offering that `requirements` allow."""
        found = self._offered.get(requirements)
        if found is None:
            allowed = self.allowed_offerings(requirements) & self._offering_available
            found = np.zeros(len(self.types), dtype=np.bool_)
            found[self._offering_type[allowed]] = True
            self._offered[requirements] = found
        return found

    def allowed_offerings(self, requirements: Requirements) -> Mask:
        """Return a mask of the offerings that `requirements` allow.

        The mask has one entry for each offering, in the order of the types.
        """
        allowed = np.ones(len(self._offerings), dtype=np.bool_)
        for key, column in self._offering_labels.items():
            requirement = requirements.find(key)
            if requirement is None and key in self.well_known:
                continue
            allowed &= column.mask(requirement, _allows)
        return allowed

    def fitting(self, requests: Mapping[str, int]) -> Mask:
        """Return a mask of the types whose allocatable resources are at least `requests`."""
        found = self._nonnegative
        for name, amount in requests.items():
            column = self._resources.get(name)
            if column is not None:
                found = found & (self.allocatable[:, column] >= amount)
            elif amount > 0:
                return ~self.all
        return found

    def within(self, remaining: Mapping[str, int]) -> Mask:
        """Return a mask of the types whose capacity does not exceed the limits in `remaining`."""
        found = self.all
        for name, amount in remaining.items():
            column = self._resources.get(name)
            if column is not None:
                found = found & (self.capacity[:, column] <= amount)
            elif amount < 0:
                return ~self.all
        return found

    def largest_capacity(self, options: Mask, resource: str) -> int:
        """Return the largest capacity of `resource` among the types in the mask `options`.

        Returns 0 if no type has the resource.
        """
        column = self._resources.get(resource)
        if column is None or not options.any():
            return 0
        return int(self.capacity[options, column].max())

    def chosen(self, options: Mask) -> list[InstanceType]:
        """Return the types in the mask `options`, in the provider's order."""
        return [self.types[i] for i in np.flatnonzero(options)]

    def reserved(self, options: Mask, requirements: Requirements) -> list[Offering]:
        """Return the available reserved offerings of `options` that `requirements` allow."""
        if not self.has_reserved:
            return []
        allowed = self.allowed_offerings(requirements) & self._offering_available
        return [
            self._offerings[i]
            for i in np.flatnonzero(allowed)
            if options[self._offering_type[i]] and self._offerings[i].capacity_type == RESERVED
        ]

    def cheapest_prices(self, requirements: Requirements) -> list[float]:
        """Return, for each type, the lowest price of its available and allowed offerings.

        `requirements` decide which offerings are allowed. The price is NO_PRICE for a type that has
        no such offering.
        """
        found = self._orders.get(requirements)
        if found is None:
            found = self._orders[requirements] = [
                one.cheapest_price(requirements, self.well_known) for one in self.types
            ]
        return found


def _intersects(one: LabelRequirement, requirement: LabelRequirement | None) -> bool:
    return (
        requirement is None
        or one.has_intersection(requirement)
        or (one.allows_missing_label and requirement.allows_missing_label)
    )


def _allows(one: LabelRequirement, requirement: LabelRequirement | None) -> bool:
    """Return whether the requirements on one label allow a node to use an offering.

    `one` is the requirement of the offering, and `requirement` is the requirement of the node. If
    `requirement` is None, the node has no requirement on the label, and the result tells whether a
    node without the label satisfies `one`.
    """
    if requirement is None:
        return one.allows_missing_label
    return requirement.has_intersection(one) or (
        one.allows_missing_label and requirement.allows_missing_label
    )
