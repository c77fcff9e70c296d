"""Cluster-wide limits of cores, memory and GPUs.

upstream: resourcequotas/, core/scaledown/resource/limits.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.quantity import whole_value
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    GPU_RESOURCES,
    CloudProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions, Limits
from fairlead.engine.autoscaling.cluster_autoscaler.taint import is_being_deleted
from fairlead.engine.core.instant import Instant

CORES: Final = "cpu"
MEMORY: Final = "memory"
_VIRTUAL_KUBELET: Final = ("type", "virtual-kubelet")
Amounts = dict[str, int]


def resource_limits(options: AutoscalingOptions) -> dict[str, Limits]:
    """Return the limits of each resource; a type of GPU is named by the value of the GPU label."""
    return {CORES: options.cores_total, MEMORY: options.memory_total, **options.gpu_total}


class NodeResources:
    """The resources of nodes; the values of a group's first node hold for the whole group."""

    def __init__(self, provider: CloudProvider) -> None:
        """Read `provider`; values are cached, so create a new object in each loop."""
        self._provider = provider
        self._by_group: dict[str, Amounts] = {}

    def of(self, node: Node, group: str | None = None) -> Amounts:
        """Return the whole cores, bytes of memory, and GPUs of `node`, which belongs to `group`."""
        if group is None:
            found = self._provider.node_group_for(node.spec.provider_id)
            group = None if found is None else found.id
        if group is None:
            return self._counted(node)
        if group not in self._by_group:
            self._by_group[group] = self._counted(node)
        return self._by_group[group]

    def _counted(self, node: Node) -> Amounts:
        capacity = node.status.capacity
        found = {
            CORES: whole_value(capacity.get("cpu", 0)),
            MEMORY: whole_value(capacity.get("memory", 0)),
        }
        kind = node.metadata.labels.get(self._provider.gpu_label)
        if kind is not None:
            found[kind] = max(whole_value(capacity.get(name, 0)) for name in GPU_RESOURCES)
        return found


class QuotaTracker:
    """Counts how many resources may still be added; `take` subtracts."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        resources: NodeResources,
        nodes: Iterable[tuple[Node, str | None]],
    ) -> None:
        """Count all `nodes` of the snapshot; a placeholder is listed with its group."""
        self._resources = resources
        self._left = {name: limit.maximum for name, limit in limits.items()}
        for node, group in nodes:
            key, value = _VIRTUAL_KUBELET
            if node.metadata.labels.get(key) == value:
                continue
            for name, amount in resources.of(node, group).items():
                if name in self._left:
                    self._left[name] -= amount

    def allowed(self, group: str, template: Node, wanted: int) -> int:
        """Return how many of `wanted` nodes the limits allow."""
        for name, amount in self._resources.of(template, group).items():
            if amount > 0 and name in self._left:
                wanted = min(wanted, max(self._left[name], 0) // amount)
        return wanted

    def exceeded(self, group: str, template: Node, wanted: int) -> list[str]:
        """Return the resources whose limit `wanted` new nodes would exceed, sorted."""
        amounts = self._resources.of(template, group)
        return sorted(
            name
            for name, amount in amounts.items()
            if name in self._left and amount > 0 and amount * wanted > self._left[name]
        )

    def take(self, group: str, template: Node, count: int) -> None:
        """Subtract the resources of `count` new nodes of `group` from the available resources."""
        for name, amount in self._resources.of(template, group).items():
            if name in self._left:
                self._left[name] -= amount * count


class MinimumLeft:
    """Counts how much scale-down may remove before the cluster reaches a minimum."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        resources: NodeResources,
        nodes: Callable[[], Iterable[tuple[Node, str | None]]],
        now: Instant,
    ) -> None:
        """Count `nodes()`, except those that are being deleted, when it is first needed."""
        self._resources = resources
        self._limits = limits
        self._nodes = nodes
        self._now = now

    @cached_property
    def _left(self) -> Amounts:
        limits = self._limits
        totals: Amounts = dict.fromkeys(limits, 0)
        for node, group in self._nodes():
            if is_being_deleted(node, self._now):
                continue
            for name, amount in self._resources.of(node, group).items():
                if name in totals:
                    totals[name] += amount
        return {name: max(totals[name] - limits[name].minimum, 0) for name in limits}

    def try_take(self, node: Node) -> bool:
        """Return whether the minimums allow removing `node`; if so, count it as removed."""
        amounts = self._resources.of(node)
        if any(amount > self._left[name] for name, amount in amounts.items() if name in self._left):
            return False
        for name, amount in amounts.items():
            if name in self._left:
                self._left[name] -= amount
        return True
