"""The launch of a standalone NodeClaim, which a user created without a NodePool.

    options   the instance types that match `spec.requirements`, have room for
              `spec.resources.requests`, and have an available offering
    choice    the cheapest offering; if several are cheapest, the type whose name comes first
    labels    the labels that the user set; for each other custom label in `spec.requirements`, the
              label with one of the allowed values

upstream: pkg/controllers/nodeclaim/lifecycle/launch.go:PopulateNodeClaimDetails;
karpenter-provider-aws pkg/cloudprovider/cloudprovider.go:resolveInstanceTypes
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
    fits,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import (
    cheapest_first,
    custom_labels,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements, combined
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts


def standalone_launches(
    claim: NodeClaim, table: InstanceTypeTable
) -> list[tuple[InstanceType, Offering]]:
    """Return the (type, offering) pairs that the NodeClaim allows and that are available.

    The cheapest offering comes first.
    """
    requirements = _requirements(claim)
    requests = amounts(claim.spec.resources.get("requests", {}))
    types = [
        one
        for one in table.types
        if requirements.compatible(one.requirements, table.well_known)
        and fits(requests, one.allocatable)
    ]
    return cheapest_first(types, requirements, table.well_known)


def with_custom_labels(claim: NodeClaim, table: InstanceTypeTable) -> NodeClaim:
    """Return the NodeClaim with a label for each of its requirements on a custom label.

    Labels that the user set are kept.
    """
    added = custom_labels(_requirements(claim), table.well_known)
    labels = {**added, **claim.metadata.labels}
    return replace(claim, metadata=replace(claim.metadata, labels=labels))


def _requirements(claim: NodeClaim) -> Requirements:
    return combined(
        requirement(one.key, one.operator, one.values) for one in claim.spec.requirements
    )
