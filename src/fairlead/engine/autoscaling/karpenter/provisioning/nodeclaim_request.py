"""NodeClaimRequest: a NodeClaim to create, and the offerings with which it may be launched.

upstream: pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go:ToNodeClaim, kwok's
cloudprovider.go:Create
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
    min_values_error,
    unmet_min_values,
)
from fairlead.engine.autoscaling.karpenter.go_sort import go_sorted
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_OVERLAY_APPLIED,
    CAPACITY_TYPE,
    MIN_VALUES_RELAXED,
    PRICE_OVERLAY_APPLIED,
    is_restricted,
)
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import (
    template_labels,
    template_requirements,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.nodeclaim import (
    InFlightNodeClaim,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements


class NodeClaimRequest(Struct, frozen=True):
    """A NodeClaim to create.

    A request for a static NodePool has only the requirements of the NodePool's template. Such a
    request has no types and no pods.
    """

    pool: NodePool
    # The requirements of the NodePool and of the placed pods. `stored_requirements` adds
    # requirements on the instance type and the capacity type.
    requirements: Requirements
    instance_types: tuple[InstanceType, ...]  # the possible types, cheapest first
    requests: Mapping[str, int]
    # The keys of the placed pods, in the order in which they were placed.
    pods: tuple[str, ...] = ()
    annotations: Mapping[str, str] | None = None
    well_known: frozenset[str] = frozenset()

    @property
    def stored_requirements(self) -> Requirements:
        """The requirements that the NodeClaim gets.

        If the pool is not static, the requirements also list the instance types and their available
        capacity types.
        """
        if self.pool.is_static:
            return self.requirements
        minimum = self.requirements.get(INSTANCE_TYPE).min_values
        names = frozenset(one.name for one in self.instance_types)
        capacity_types = {
            offering.capacity_type
            for one in self.instance_types
            for offering in one.compatible_offerings(self.requirements, self.well_known)
            if offering.available
        }
        found = self.requirements.with_added(
            (LabelRequirement(INSTANCE_TYPE, values=names, min_values=minimum),)
        )
        if not capacity_types:
            return found
        only = LabelRequirement(CAPACITY_TYPE, values=frozenset(capacity_types))
        return found.with_added((only,))

    @property
    def ordered_types(self) -> list[InstanceType]:
        """The possible types, ordered by the price of their cheapest allowed offering."""
        return ordered_by_price(self.instance_types, self.requirements, self.well_known)

    @property
    def labels(self) -> dict[str, str]:
        """The template's labels, and one value for each requirement on a custom label.

        Upstream picks an arbitrary value. If the requirement lists values, this property picks the
        value that comes first in alphabetical order. Otherwise, it picks an allowed integer.
        """
        # upstream: nodeclaimtemplate.go:resolveCustomLabelsFromRequirements
        found = template_labels(self.pool)
        for key, value in custom_labels(self.requirements, self.well_known).items():
            found.setdefault(key, value)
        return found

    def launch(self) -> tuple[InstanceType, Offering] | None:
        """Return the (type, offering) that a provider launches.

        Returns None if no offering is available.
        """
        return next(iter(self.launches()), None)

    def launches(self) -> list[tuple[InstanceType, Offering]]:
        """Return the available (type, offering) pairs in the order in which a provider tries them.

        The order is that of `cheapest_first`.
        """
        return cheapest_first(self.instance_types, self.stored_requirements, self.well_known)


def cheapest_first(
    types: Iterable[InstanceType], requirements: Requirements, well_known: frozenset[str]
) -> list[tuple[InstanceType, Offering]]:
    """Return the available (type, offering) pairs that `requirements` allow, cheapest first.

    Pairs of equal price are ordered by the names of their types.
    """
    found = [
        (one, offering)
        for one in sorted(types, key=lambda one: one.name)
        for offering in one.compatible_offerings(requirements, well_known)
        if offering.available
    ]
    return sorted(found, key=lambda entry: entry[1].price)


def custom_labels(requirements: Requirements, well_known: frozenset[str]) -> dict[str, str]:
    """Return {label: value} for each requirement on a custom label.

    A label is custom if it is neither well known nor restricted.
    """
    found: dict[str, str] = {}
    for one in requirements:
        if is_custom(one.key, well_known):
            value = _any_value(one)
            if value is not None:
                found[one.key] = value
    return found


def static_request(pool: NodePool, well_known: frozenset[str]) -> NodeClaimRequest:
    """Return the request for a NodeClaim of a static NodePool."""
    return NodeClaimRequest(pool, template_requirements(pool), (), {}, well_known=well_known)


def is_custom(key: str, well_known: frozenset[str]) -> bool:
    """Return whether the label `key` is neither well known nor restricted."""
    return key not in well_known and not is_restricted(key, well_known)


def _any_value(one: LabelRequirement) -> str | None:
    if not one.complement:
        return min(one.values, default=None)
    number = one.gte if one.gte is not None else min(0, one.lte or 0)
    while str(number) in one.values:  # bounded by the values
        number += 1
    return str(number)


def ordered_by_price(
    types: Sequence[InstanceType], requirements: Requirements, well_known: frozenset[str]
) -> list[InstanceType]:
    """Return `types`, ordered by the price of their cheapest compatible offering.

    Types of equal price have the order in which Go's sort.Slice leaves them.
    """
    prices = [one.cheapest_price(requirements, well_known) for one in types]
    return go_sorted(list(types), prices)


def request_of(claim: InFlightNodeClaim, options: KarpenterOptions) -> NodeClaimRequest | str:
    """Return the request that creates `claim`, or upstream's reason against it.

    The request keeps only the `max_instance_types` cheapest types. If these types have fewer values
    than `minValues` demands, upstream's reason is returned. The policy `BestEffort` allows fewer
    values.
    """
    # upstream: scheduler.go:TruncateInstanceTypes
    table = claim.template.table
    requirements = claim.requirements
    prices = table.cheapest_prices(requirements)
    types = claim.instance_types
    ordered = go_sorted(types, [prices[table.index[one.name]] for one in types])
    cut = ordered[: options.max_instance_types]
    if not options.relaxes_min_values:
        unmet = unmet_min_values(cut, requirements)[1]
        if unmet:
            return (
                "pod didn’t schedule because NodePool couldn’t meet minValues requirements, "  # noqa: RUF001
                f"validating minValues, {min_values_error(unmet)} "
                f"(NodePool={claim.template.pool_name})"
            )
    return NodeClaimRequest(
        pool=claim.template.pool,
        requirements=requirements,
        instance_types=tuple(cut),
        requests=claim.requests,
        pods=tuple(one.key for one in claim.pods),
        annotations=_annotations(claim, cut),
        well_known=options.well_known_labels,
    )


def _annotations(claim: InFlightNodeClaim, types: Iterable[InstanceType]) -> dict[str, str]:
    found = dict(claim.template.pool.spec.template.metadata.annotations)
    found[MIN_VALUES_RELAXED] = "true" if claim.min_values_relaxed else "false"
    options = list(types)
    if any(offering.price_overlaid for one in options for offering in one.offerings):
        found[PRICE_OVERLAY_APPLIED] = "true"
    if any(one.capacity_overlaid for one in options):
        found[CAPACITY_OVERLAY_APPLIED] = "true"
    return found
