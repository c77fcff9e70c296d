"""NodeClaimTemplate: the template of all NodeClaims of a NodePool.

upstream: pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.api.objects import Taint
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
    Mask,
)
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    combined,
    label_requirements,
)


class NodeClaimTemplate(Struct, frozen=True, eq=False):
    """The template of a NodePool's nodes.

    `table` contains the instance types of the NodePool. `options` is a mask over `table`. It
    selects the types that a node of this template can have.
    """

    pool: NodePool
    labels: Mapping[str, str]
    requirements: Requirements
    table: InstanceTypeTable
    options: Mask

    @property
    def pool_name(self) -> str:
        """The name of the NodePool."""
        return self.pool.name

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that pods must tolerate: those of the pool's nodes, except startup taints."""
        return self.pool.spec.template.spec.taints


def pool_requirements(pool: NodePool) -> Requirements:
    """Return the requirements of a NodePool; the labels of its template count as requirements."""
    stated = pool.spec.template.spec.requirements
    labels = label_requirements(pool.spec.template.metadata.labels)
    return combined(
        requirement(one.key, one.operator, one.values, one.min_values) for one in stated
    ).with_added(labels)


def template_labels(pool: NodePool) -> dict[str, str]:
    """Return the labels that every NodeClaim of `pool` has."""
    reference = pool.spec.template.spec.node_class_ref
    labels = {**pool.spec.template.metadata.labels, NODE_POOL: pool.name}
    if reference.kind:
        labels[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return labels


def template_requirements(pool: NodePool) -> Requirements:
    """Return the requirements that every NodeClaim of the pool starts with."""
    return pool_requirements(pool).with_added(label_requirements(template_labels(pool)))
