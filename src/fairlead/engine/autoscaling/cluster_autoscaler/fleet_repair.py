"""FleetRepair: deletes instances that never became nodes, and corrects wrong target sizes.

upstream: core/static_autoscaler.go: removeOldUnregisteredNodes, deleteCreatedNodesWithErrors,
fixNodeGroupSize
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    NodeGroup,
    ProviderError,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, WARNING
from fairlead.engine.core.instant import Instant


class RepairError(Exception):
    """The provider refused to lower a target size. The refusal ends the current loop."""


class FleetRepair:
    """Deletes failed instances and corrects target sizes, before a loop scales node groups."""

    def __init__(self, context: AutoscalingContext) -> None:
        self._context = context

    def remove_old_unregistered(self, now: Instant) -> None:
        """Delete instances that still have no Node after the maximum provision time.

        No group falls below its minimum size, unless --force-delete-unregistered-nodes is set. If
        the provider refuses a deletion, no further group is processed.
        """
        context = self._context
        by_group: dict[str, list[str]] = {}
        for provider_id, since in context.registry.unregistered().items():
            group = context.provider.node_group_for(provider_id)
            if group is None:
                continue
            if since + context.group_options(group).max_node_provision_time < now:
                by_group.setdefault(group.id, []).append(provider_id)
        groups = context.groups_by_id()
        for name, provider_ids in sorted(by_group.items()):
            if not self._delete_unregistered(groups[name], provider_ids, now):
                return

    def _delete_unregistered(self, group: NodeGroup, provider_ids: list[str], now: Instant) -> bool:
        context, force = self._context, self._context.options.force_delete_unregistered_nodes
        possible = group.target_size() - group.min_size
        if not force:
            if possible <= 0:
                return True
            provider_ids = provider_ids[:possible]
        provider_ids = self._whole(group, provider_ids)
        try:
            group.delete_nodes(provider_ids, now, force=force)
        except ProviderError as failure:
            context.registry.cache.invalidate(group.id)
            for one in provider_ids:
                message = f"Failed to remove node {one}: {failure}"
                context.events.on_status(WARNING, "DeleteUnregisteredFailed", message)
            return False
        context.registry.cache.invalidate(group.id)
        for one in provider_ids:
            message = f"Removed unregistered node {one}"
            context.events.on_status(NORMAL, "DeleteUnregistered", message)
        return True

    def delete_failed_instances(self, now: Instant) -> None:
        """Delete instances that could not be created. A refusal of the provider is ignored.

        No group falls below its minimum size, unless --force-delete-failed-nodes is set.
        """
        context, groups, deleted = self._context, self._context.groups_by_id(), False
        force = context.options.force_delete_failed_nodes
        for name, provider_ids in context.registry.instances_with_errors().items():
            group = groups.get(name)
            if group is None:
                continue
            try:
                group.delete_nodes(self._whole(group, provider_ids), now, force=force)
            except ProviderError:
                continue
            deleted = True
            context.registry.cache.invalidate(name)
        if deleted:
            context.registry.recalculate()

    def _whole(self, group: NodeGroup, provider_ids: Sequence[str]) -> list[str]:
        """Return the ids of all instances if `group` scales only as a whole, else the given ids."""
        if self._context.group_options(group).zero_or_max_node_scaling:
            return [instance.id for instance in group.instances()]
        return list(provider_ids)

    def fix_sizes(self, now: Instant) -> bool:
        """Lower the target size of each group that has fewer nodes than its target size.

        A target size is lowered only after the group has had too few nodes for the maximum
        provision time. Returns whether a target size was lowered. Raises RepairError if the
        provider refuses.
        """
        context, has_fixed = self._context, False
        for group in context.provider.node_groups():
            wrong = context.registry.incorrect_size(group.id)
            if wrong is None or wrong.current >= wrong.expected:
                continue
            if wrong.since + context.group_options(group).max_node_provision_time >= now:
                continue
            try:
                group.decrease_target_size(wrong.current - wrong.expected, now)
            except ProviderError as failure:
                raise RepairError(f"failed to decrease {group.id}: {failure}") from failure
            has_fixed = True
        return has_fixed
