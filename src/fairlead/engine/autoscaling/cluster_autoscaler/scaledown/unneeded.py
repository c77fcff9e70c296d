"""UnneededNodes: the time since which each node is unneeded, and the nodes to delete now.

upstream: core/scaledown/unneeded/nodes.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.node_readiness import (
    node_readiness,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import MinimumLeft
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.eligibility import (
    has_no_scale_down_annotation,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.removal import NodeToBeRemoved
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import UnremovableReason
from fairlead.engine.core.instant import DurationNs, Instant


class UnneededNode(Struct, frozen=True):
    """A node that was found removable in every loop since the time `since`."""

    removal: NodeToBeRemoved
    since: Instant


class UnneededNodes:
    """The unneeded nodes, in the order in which they were evaluated.

    `since_before` maps nodes to the time since which an earlier process found them unneeded. The
    first `update` reads these times.
    """

    def __init__(self, context: AutoscalingContext) -> None:
        self._context = context
        self.by_name: dict[str, UnneededNode] = {}
        self.since_before: dict[str, Instant] = {}

    def update(self, removable: Iterable[NodeToBeRemoved], now: Instant) -> None:
        """Replace the unneeded nodes with `removable`.

        `since` is the time at which a node became unneeded. Nodes that were already unneeded keep
        this time. For all other nodes, this time is `now`.
        """
        before = {name: one.since for name, one in self.by_name.items()} | self.since_before
        self.since_before = {}
        self.by_name = {
            one.name: UnneededNode(one, min(before.get(one.name, now), now)) for one in removable
        }

    def clear(self) -> None:
        """Forget all unneeded nodes."""
        self.by_name = {}
        self.since_before = {}

    def threshold(self, node: Node) -> DurationNs:
        """Return the time in ns for which `node` must be unneeded before its deletion."""
        options = self._context.group_options(self._context.group_of(node))
        if node_readiness(node).is_ready:
            return options.scale_down_unneeded_time
        return options.scale_down_unready_time

    def removable_at(
        self, now: Instant, left: MinimumLeft, deletions: Mapping[str, int]
    ) -> tuple[list[NodeToBeRemoved], dict[str, UnremovableReason]]:
        """Return the nodes to delete now, and {node name: reason} for the nodes to keep.

        Empty nodes come first. `left` counts the resources that may still be removed from the
        cluster. This method subtracts the resources of the returned nodes from `left`. `deletions`
        maps each group to the number of its deletions in progress. The deletions leave no group
        below its minimum size.
        """
        sizes = {one.id: one.target_size() for one in self._context.provider.node_groups()}
        for group, count in deletions.items():
            sizes[group] = sizes.get(group, 0) - count
        found, refused = [], {}
        nodes = self.by_name.values()
        empty = [one for one in nodes if one.removal.is_empty]
        for one in (*empty, *(one for one in nodes if not one.removal.is_empty)):
            reason = self._reason(one, now, left, sizes)
            if reason is None:
                found.append(one.removal)
            else:
                refused[one.removal.name] = reason
        return found, refused

    def _reason(
        self, one: UnneededNode, now: Instant, left: MinimumLeft, sizes: dict[str, int]
    ) -> UnremovableReason | None:
        node = one.removal.node
        if has_no_scale_down_annotation(node):
            return UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION
        group = self._context.group_of(node)
        assert group is not None, node
        threshold = self.threshold(node)
        if threshold > 0 and one.since + threshold >= now:
            if node_readiness(node).is_ready:
                return UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH
            return UnremovableReason.NOT_UNREADY_LONG_ENOUGH
        if sizes[group.id] <= group.min_size:
            return UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED
        if not left.try_take(node):
            return UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
        sizes[group.id] -= 1
        return None
