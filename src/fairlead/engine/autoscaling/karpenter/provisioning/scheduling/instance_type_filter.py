"""Filters the instance types of a NodeClaim; gives upstream's reason if no type remains.

upstream: pkg/controllers/provisioning/scheduling/nodeclaim.go:filterInstanceTypesByRequirements,
InstanceTypeFilterError
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    min_values_error,
    unmet_min_values,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
    Mask,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements

_MEGA_CPU_MILLI: Final = 1_000_000 * 1_000
_TOO_LARGE: Final = "no instance type has enough resources"

RemainingTypes = tuple[Mask, dict[str, int]]
"""The remaining types, and {label: number of values left} for labels with unmet minValues."""


class FilterFailure(Struct, frozen=True):
    """The failure to find an instance type for a NodeClaim.

    `reason` is the first part of upstream's text. `is_huge` is set if the amount of cpu looks like
    a typo.
    """

    reason: str
    is_huge: bool = False


def filter_instance_types(
    table: InstanceTypeTable,
    options: Mask,
    requirements: Requirements,
    requests: Mapping[str, int],
    *,
    relaxes_min_values: bool,
) -> RemainingTypes | FilterFailure:
    """Return the types in `options` that satisfy `requirements`, fit `requests`, and are offered.

    The result is (mask of the types, {label: number of values left}), or a FilterFailure if no type
    remains. The mapping contains each label for which the remaining types have fewer values than
    `minValues`. If `relaxes_min_values` is not set, such a label leads to a FilterFailure, too.
    """
    met, fits, offered = (
        table.compatible(requirements),
        table.fitting(requests),
        table.offered(requirements),
    )
    remaining = options & met & fits & offered
    if not remaining.any():
        reason = _reason(options & met, options & fits, options & offered)
        is_huge = reason == _TOO_LARGE and requests.get("cpu", 0) >= _MEGA_CPU_MILLI
        return FilterFailure(reason, is_huge)
    unmet: dict[str, int] = {}
    if requirements.with_min_values():
        unmet = unmet_min_values(table.chosen(remaining), requirements)[1]
        if unmet and not relaxes_min_values:
            return FilterFailure(min_values_error(unmet))
    return remaining, unmet


def _reason(met: Mask, fits: Mask, offered: Mask) -> str:
    any_met, any_fits, any_offered = bool(met.any()), bool(fits.any()), bool(offered.any())
    missing = [
        text
        for found, text in (
            (any_met, "met the scheduling requirements"),
            (any_fits, "had enough resources"),
            (any_offered, "had a required offering"),
        )
        if not found
    ]
    if len(missing) > 1:
        return f"no instance type {' or '.join(missing)}"
    if not any_met:
        return "no instance type met all requirements"
    if not any_fits:
        return _TOO_LARGE
    if not any_offered:
        return "no instance type has the required offering"
    if (met & fits & ~offered).any():
        return (
            "no instance type which met the scheduling requirements and had enough resources, "
            "had a required offering"
        )
    if (fits & offered & ~met).any():
        return (
            "no instance type which had enough resources and the required offering met the "
            "scheduling requirements"
        )
    if (met & offered & ~fits).any():
        return (
            "no instance type which met the scheduling requirements and the required offering "
            "had the required resources"
        )
    return "no instance type met the requirements/resources/offering tuple"
