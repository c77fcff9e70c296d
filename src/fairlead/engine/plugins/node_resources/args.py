"""The plugin arguments NodeResourcesFitArgs and NodeResourcesBalancedAllocationArgs.

upstream: apis/config/types_pluginargs.go, v1/defaults.go, validation/validation_pluginargs.go
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from fairlead.api.label import label_key_problems
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.field_problem import duplicate, forbidden, invalid, not_supported, required

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
_TYPES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_NO_SLASH: Final = "resource group name can't contain '/'"

Problems = Iterator[str]


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource and its weight in the score; a `weight` of 0 means the default weight, 1."""

    name: str
    weight: int = 0

    @property
    def effective_weight(self) -> int:
        """The weight, or the default weight 1 if `weight` is 0."""
        return self.weight or 1


CPU_AND_MEMORY: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of the function from utilisation (0..100) to score (0..10)."""

    utilization: int
    score: int


class RatioParam(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The field `requestedToCapacityRatio` of the scoring strategy."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The field `scoringStrategy`; by default, cpu and memory are scored with weight 1."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RatioParam | None = None

    @property
    def effective_resources(self) -> tuple[ResourceSpec, ...]:
        """The resources to score, cpu and memory by default."""
        return self.resources or CPU_AND_MEMORY


class FitArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin arguments of NodeResourcesFit (NodeResourcesFitArgs).

    If a field is invalid, the constructor raises ValueError with the name of the first such field.
    """

    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for problem in (*self._ignored_problems(), *_strategy_problems(self.scoring_strategy)):
            raise ValueError(problem)

    def _ignored_problems(self) -> Problems:
        for index, name in enumerate(self.ignored_resources):
            for problem in label_key_problems(name):
                yield f"ignoredResources[{index}]: {invalid(name, problem)}"
        for index, group in enumerate(self.ignored_resource_groups):
            field = f"ignoredResourceGroups[{index}]"
            if "/" in group:
                yield f"{field}: {invalid(group, _NO_SLASH)}"
            for problem in label_key_problems(group):
                yield f"{field}: {invalid(group, problem)}"

    @property
    def ignores_anything(self) -> bool:
        """True if the arguments contain a resource or a resource group to ignore."""
        return bool(self.ignored_resources or self.ignored_resource_groups)

    def ignores(self, name: str) -> bool:
        """Return whether the plugin ignores resource `name`; False for native resources."""
        if not is_extended_resource(name):
            return False
        group, _, _ = name.partition("/")
        return name in self.ignored_resources or group in self.ignored_resource_groups


class BalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of NodeResourcesBalancedAllocation; by default cpu and memory are balanced.

    If a field is invalid, the constructor raises ValueError with the name of the first such field.
    """

    resources: tuple[ResourceSpec, ...] = ()

    def __post_init__(self) -> None:
        names = [resource.name for resource in self.resources]
        for index, resource in enumerate(self.resources):
            if resource.name in names[:index]:
                raise ValueError(f"resources[{index}].name: {duplicate(resource.name)}")
            if resource.effective_weight != 1:
                problem = invalid(resource.weight, "must be 1")
                raise ValueError(f"resources[{index}].weight: {problem}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the resources to balance, cpu and memory by default."""
        return tuple(resource.name for resource in self.resources or CPU_AND_MEMORY)


def _strategy_problems(strategy: ScoringStrategy) -> Problems:
    where = "scoringStrategy"
    if strategy.type not in _TYPES:
        yield f"{where}.type: {not_supported(strategy.type, _TYPES)}"
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.effective_weight <= 100:
            why = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield f"{where}.resources[{index}].weight: {invalid(resource.weight, why)}"
    ratio = strategy.requested_to_capacity_ratio
    field = f"{where}.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            why = f"must be nil when type is not {REQUESTED_TO_CAPACITY_RATIO}"
            yield f"{field}: {forbidden(why)}"
    elif ratio is None:
        why = f"must be specified when type is {REQUESTED_TO_CAPACITY_RATIO}"
        yield f"{field}: {required(why)}"
    else:
        yield from _shape_problems(f"{field}.shape", ratio.shape)


def _shape_problems(where: str, shape: tuple[UtilizationShapePoint, ...]) -> Problems:
    if not shape:
        yield f"{where}: {required('at least one point must be specified')}"
    for index, (before, point) in enumerate(pairwise(shape), start=1):
        if before.utilization >= point.utilization:
            why = "values must be sorted in increasing order"
            yield f"{where}[{index}].utilization: {invalid(point.utilization, why)}"
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            why = "not in valid range [0, 100]"
            yield f"{where}[{index}].utilization: {invalid(point.utilization, why)}"
        if not 0 <= point.score <= 10:
            yield f"{where}[{index}].score: {invalid(point.score, 'not in valid range [0, 10]')}"
