"""Cluster-wide limits of cores, memory and GPUs, for scale-up and scale-down.

upstream: resourcequotas/, core/scaledown/resource/limits.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.api.quantity import whole_value
from fairlead.api.text.count import counted
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    GPU_RESOURCES,
    CloudProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.gpu import gpu_resource
from fairlead.engine.autoscaling.cluster_autoscaler.options import GIB, AutoscalingOptions, Limits
from fairlead.engine.autoscaling.cluster_autoscaler.taint import is_being_deleted
from fairlead.engine.core.instant import Instant

CORES: Final = "cpu"
MEMORY: Final = "memory"
_FLAGS: Final = {CORES: ("--cores-total", "core"), MEMORY: ("--memory-total", "GiB")}
_VIRTUAL_KUBELET: Final = ("type", "virtual-kubelet")
_FOREIGN_WITHOUT_GPU: Final = (
    "node without with gpu label, without capacity not belonging to autoscaled node group"
)
_NO_TEMPLATE: Final = "Not implemented"
Amounts = dict[str, int]


def resource_limits(options: AutoscalingOptions) -> dict[str, Limits]:
    """Return the cluster's limits, by resource.

    The key of a GPU type is the value that the GPU label has on nodes with this type.
    """
    return {CORES: options.cores_total, MEMORY: options.memory_total, **options.gpu_total}


class TotalLimit(Struct, frozen=True):
    """The maximum amount of one resource in the cluster, and the amount that all nodes have.

    `flag` is the flag that sets the maximum; for GPUs, the text also contains the GPU type. Amounts
    are in cores, bytes or GPUs. `of_new_node` maps each node group to the amount that a new node of
    the group has. `unit` is the unit of the flag: core, GiB or GPU.
    """

    flag: str
    unit: str
    maximum: int
    present: int
    of_new_node: Mapping[str, int]

    def exceeded_by(self, group: str, count: int) -> bool:
        """Return whether `count` new nodes of `group` would exceed the maximum."""
        more = self.of_new_node.get(group, 0)
        return more > 0 and self.present + count * more > self.maximum

    def in_unit(self, amount: int) -> int:
        """Return `amount` in the unit of the flag, rounded up."""
        return -(-amount // GIB) if self.unit == "GiB" else amount

    def words(self, amount: int) -> str:
        """Return `amount` in the unit of the flag, such as `16 cores`, rounded up."""
        number = self.in_unit(amount)
        return f"{number:,} GiB" if self.unit == "GiB" else counted(number, self.unit)


def total_limits(
    options: AutoscalingOptions, provider: CloudProvider, nodes: Iterable[Node]
) -> tuple[TotalLimit, ...]:
    """Return the cluster-wide maximums in `options` and the amounts of `nodes`.

    Groups without a template are left out. The result is () if the number of GPUs is unknown.
    """
    resources, present = NodeResources(provider), Counter[str]()
    key, value = _VIRTUAL_KUBELET
    of_new_node: dict[str, Amounts] = {}
    try:
        for node in nodes:
            if node.metadata.labels.get(key) != value:
                present.update(resources.of(node))
        for group in provider.node_groups():
            if (template := group.template_node()) is not None:
                of_new_node[group.id] = resources.of(template, group.id)
    except GpuCountError:
        return ()
    return tuple(
        TotalLimit(
            *_FLAGS.get(name, (f"--gpu-total of {name}", "GPU")),
            limit.maximum,
            present[name],
            {one: amounts.get(name, 0) for one, amounts in of_new_node.items()},
        )
        for name, limit in resource_limits(options).items()
    )


class GpuCountError(Exception):
    """The number of a node's GPUs is unknown. The error text is upstream's."""


class NodeResources:
    """The resources of nodes, by node group.

    The first call of `of` for a group computes the resources of the given node. Later calls for the
    group return the same amounts: all nodes of a group are assumed to be equal.
    """

    def __init__(self, provider: CloudProvider) -> None:
        """Start with an empty cache; `provider` determines the group of a node.

        The cached resources of a group are never updated, so each loop must create its own
        NodeResources.
        """
        self._provider = provider
        self._by_group: dict[str, Amounts] = {}

    def of(self, node: Node, group: str | None = None) -> Amounts:
        """Return the numbers of whole cores, bytes of memory and GPUs of `node`, a node of `group`.

        If `group` is None, the provider determines the group. Raises GpuCountError if the number of
        GPUs is unknown.
        """
        if group is None:
            found = self._provider.node_group_for(node.spec.provider_id)
            group = None if found is None else found.id
        if group is None:
            return self._counted(node, None)
        if group not in self._by_group:
            self._by_group[group] = self._counted(node, group)
        return self._by_group[group]

    @staticmethod
    def without_gpus(node: Node) -> Amounts:
        """Return the capacity of `node` without GPUs: whole cores, and bytes of memory."""
        capacity = node.status.capacity
        return {
            CORES: whole_value(capacity.get("cpu", 0)),
            MEMORY: whole_value(capacity.get("memory", 0)),
        }

    def _counted(self, node: Node, group: str | None) -> Amounts:
        found = self.without_gpus(node)
        kind = node.metadata.labels.get(self._provider.gpu_label)
        if kind is not None:
            found[kind] = self._gpus(node, group)
        return found

    def _gpus(self, node: Node, group: str | None) -> int:
        """Return the number of GPUs that a node with the GPU label has, or will have.

        While the GPU driver is missing, this is the number of GPUs in the provider's template.
        Raises GpuCountError if there is no template.
        """
        # upstream: processors/customresources/gpu_processor.go: GetNodeGpuTarget
        resource = gpu_resource(node)
        if resource is not None:
            return whole_value(node.status.allocatable[resource])
        if group is None:
            raise GpuCountError(_FOREIGN_WITHOUT_GPU)
        own = next((one for one in self._provider.node_groups() if one.id == group), None)
        template = None if own is None else own.template_node()
        if template is None:
            raise GpuCountError(_NO_TEMPLATE)
        capacity = template.status.capacity
        return next((whole_value(capacity[n]) for n in GPU_RESOURCES if n in capacity), 0)


class QuotaTracker:
    """Counts the resources that scale-up may still add before the cluster exceeds a maximum."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        resources: NodeResources,
        nodes: Iterable[tuple[Node, str | None]],
    ) -> None:
        """Subtract the resources of `nodes` from the maximums in `limits`.

        `nodes` are pairs (node, group id). The group id is None for a node that already exists;
        `resources` then looks up the group of the node. Virtual kubelets are ignored.
        """
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
        """Return the number of new nodes that the limits allow, at most `wanted`.

        The nodes are copies of `template`, in the node group `group`.
        """
        for name, amount in self._resources.of(template, group).items():
            if amount > 0 and name in self._left:
                wanted = min(wanted, max(self._left[name], 0) // amount)
        return wanted

    def exceeded(self, group: str, template: Node, wanted: int) -> list[str]:
        """Return the sorted names of the resources whose limits `wanted` new nodes would exceed.

        The nodes are copies of `template`, in the node group `group`.
        """
        amounts = self._resources.of(template, group)
        return sorted(
            name
            for name, amount in amounts.items()
            if name in self._left and amount > 0 and amount * wanted > self._left[name]
        )

    def subtract(self, group: str, template: Node, count: int) -> None:
        """Subtract the resources of `count` new nodes from the resources that may still be added.

        The nodes are copies of `template`, in the node group `group`.
        """
        for name, amount in self._resources.of(template, group).items():
            if name in self._left:
                self._left[name] -= amount * count


class MinimumLeft:
    """Counts the resources that scale-down may remove before the cluster falls below a minimum."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        resources: NodeResources,
        nodes: Callable[[], Iterable[tuple[Node, str | None]]],
        now: Instant,
    ) -> None:
        """Prepare to apply the minimums in `limits`.

        `nodes` is not called before the first `try_take`. `nodes` returns pairs (node, group id).
        For a node that does not exist yet, the group id is that of its node group. For an existing
        node, the group id is None. Nodes that are being deleted at `now` are ignored.
        """
        self._resources = resources
        self._limits = limits
        self._nodes = nodes
        self._now = now

    @cached_property
    def _left(self) -> Amounts:
        limits = {name: one.minimum for name, one in self._limits.items() if one.minimum > 0}
        totals: Amounts = dict.fromkeys(limits, 0)
        unknown: set[str] = set()
        for node, group in self._nodes() if limits else ():
            if is_being_deleted(node, self._now):
                continue
            try:
                amounts = self._resources.of(node, group)
            except GpuCountError:
                amounts = self._resources.without_gpus(node)
                unknown = limits.keys() - amounts.keys()
            for name, amount in amounts.items():
                if name in totals:
                    totals[name] += amount
        return {
            name: 0 if name in unknown else max(totals[name] - minimum, 0)
            for name, minimum in limits.items()
        }

    def try_take(self, node: Node) -> bool:
        """Return whether the limits allow the removal of `node`; if so, count `node` as removed."""
        try:
            amounts = self._resources.of(node)
        except GpuCountError:
            amounts = self._resources.without_gpus(node)
        if any(amount > self._left[name] for name, amount in amounts.items() if name in self._left):
            return False
        for name, amount in amounts.items():
            if name in self._left:
                self._left[name] -= amount
        return True
