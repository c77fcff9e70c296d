"""TopologyDomains: every label value that the nodes of the NodePools could have.

upstream: pkg/controllers/provisioning/scheduling/topology.go:buildDomainGroups, and
topologydomaingroup.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.objects import Taint, Toleration
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import (
    pool_requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    IN,
    NOT_IN,
    LabelRequirement,
)
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated

Taints = tuple[Taint, ...]


class TopologyDomains:
    """The domains of each label, with the taints of the NodePools that provide each domain."""

    def __init__(self, pools: Iterable[tuple[NodePool, Sequence[InstanceType]]]) -> None:
        """Collect the domains of all instance types of `pools`, available or not."""
        self._by_key: dict[str, dict[str, set[Taints]]] = {}
        for pool, types in pools:
            self._insert_pool(pool, types)

    def _insert_pool(self, pool: NodePool, types: Sequence[InstanceType]) -> None:
        if not types:
            return  # upstream has no entry for such a pool
        taints = pool.spec.template.spec.taints
        requirements = pool_requirements(pool)
        for one in requirements:
            if one.operator == IN:
                self._insert(one.key, one.values, taints)
        seen: dict[str, set[LabelRequirement]] = {}
        for instance_type in types:
            for one in instance_type.requirements:
                if one not in seen.setdefault(one.key, set()):
                    seen[one.key].add(one)
                    own = requirements.find(one.key)
                    both = one if own is None else one.intersection(own)
                    self._insert(one.key, both.values, taints)
        for one in requirements:
            # As in upstream, the values that NotIn excludes count as domains.
            if one.operator == NOT_IN and any(one.key not in t.requirements for t in types):
                self._insert(one.key, one.values, taints)

    def _insert(self, key: str, values: Iterable[str], taints: Taints) -> None:
        domains = self._by_key.setdefault(key, {})
        for value in values:
            domains.setdefault(value, set()).add(taints)

    def of(self, key: str) -> Iterable[str]:
        """Return all domains of the label `key`."""
        return self._by_key.get(key, {})

    def tolerated(self, key: str, tolerations: Sequence[Toleration]) -> list[str]:
        """Return the domains of `key` in NodePools whose taints are tolerated by `tolerations`."""
        return [
            domain
            for domain, groups in self._by_key.get(key, {}).items()
            if any(untolerated(taints, tolerations) is None for taints in groups)
        ]
