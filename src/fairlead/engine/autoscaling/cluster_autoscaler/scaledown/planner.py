"""ScaleDownPlanner: finds the unneeded nodes, and the nodes to delete in this loop.

upstream: core/scaledown/planner/planner.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Node, PodDisruptionBudget
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import (
    MinimumLeft,
    NodeResources,
    resource_limits,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    DeletionsInProgress,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.disruption_budget import (
    RemainingBudgets,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.eligibility import EligibilityChecker
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.removal import (
    NodeToBeRemoved,
    RemovalSimulator,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unneeded import UnneededNodes
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import (
    Unremovable,
    UnremovableNodes,
    UnremovableReason,
)
from fairlead.engine.core.instant import DurationNs, Instant

_INTERVAL_MIN: Final[DurationNs] = 1


class NodesToDelete(Struct, frozen=True):
    """The nodes that may be deleted now. Limits on parallel deletions are not applied yet."""

    empty: tuple[NodeToBeRemoved, ...] = ()
    drain: tuple[NodeToBeRemoved, ...] = ()


class ScaleDownPlanner:
    """Finds unneeded and unremovable nodes, and keeps the results from loop to loop."""

    def __init__(self, context: AutoscalingContext, rules: DrainRules) -> None:
        """`rules` determine which pods can move."""
        self._context = context
        self.unneeded = UnneededNodes(context)
        self.unremovable = UnremovableNodes()
        self.eligibility = EligibilityChecker(context, self.unremovable)
        self._simulator = RemovalSimulator(context, rules)
        self._unneeded_time = context.options.defaults.scale_down_unneeded_time
        self._interval_min = self._unneeded_time or _INTERVAL_MIN
        self._latest: Instant | None = None
        # The names of the unneeded nodes found by the last `update`. If the cluster becomes
        # unhealthy, `unneeded` is cleared, but this set is not.
        self._previous: frozenset[str] = frozenset()

    def resume(self, unneeded_since: Mapping[str, Instant]) -> None:
        """Continue the work of an earlier process; call this before the first `update`.

        `unneeded_since` maps each node that the earlier process found unneeded to the time since
        which the node has been unneeded.
        """
        self.unneeded.since_before |= unneeded_since
        self._previous |= unneeded_since.keys()

    # --- candidates ------------------------------------------------------------------------

    def candidates(self, nodes: Iterable[Node], now: Instant) -> list[Node]:
        """Return the `nodes` of groups above their minimum size, in the order of examination.

        Empty nodes that can be removed immediately come first. Then come empty nodes with pods that
        must complete before the removal (see `DrainRules.emptiness`). All other nodes come last. In
        each of these three parts, nodes that were unneeded in the last loop come first.
        upstream: processors/nodes/pre_filtering_processor.go, processors/scaledowncandidates/
        {emptycandidates,previouscandidates}
        """
        groups = self._context.provider.node_groups()
        above = {group.id for group in groups if group.target_size() > group.min_size}
        found = []
        for node in nodes:
            group = self._context.group_of(node)
            if group is not None and group.id in above:
                is_empty, waits = self._simulator.emptiness(node.metadata.name, now)
                is_new = node.metadata.name not in self._previous
                found.append(((not is_empty, waits, is_new), node))
        found.sort(key=lambda entry: entry[0])
        return [node for _, node in found]

    # --- unneeded nodes --------------------------------------------------------------------

    def update(
        self,
        destinations: Iterable[Node],
        candidates: Sequence[Node],
        deletions: DeletionsInProgress,
        now: Instant,
    ) -> None:
        """Find the `candidates` that are unneeded because their pods fit `destinations`.

        Nodes that are being deleted are excluded from candidates and destinations.
        upstream: planner.go: UpdateClusterState, categorizeNodes
        """
        if self._latest is not None:
            self._interval_min = min(self._interval_min, max(now - self._latest, _INTERVAL_MIN))
        self._latest = now
        names = {one.metadata.name for one in destinations} - {*deletions.empty, *deletions.drained}
        remaining = [one for one in candidates if one.metadata.name not in deletions]
        with self._context.snapshot.fork():
            self._categorize(names, remaining, now)
        self._simulator.drop_old_hints()
        self._previous = frozenset(self.unneeded.by_name)

    def _categorize(self, destinations: set[str], candidates: Sequence[Node], now: Instant) -> None:
        context = self._context
        self.unremovable.update(set(context.snapshot.node_names), now)
        eligible = self.eligibility.filter_out_unremovable(candidates, now)
        budgets = RemainingBudgets(context.listers.all_of(PodDisruptionBudget))
        limit, found, counted = self._unneeded_limit(), [], 0
        for name in eligible:
            if counted >= limit:
                break
            removal = self._simulator.simulate(name, destinations, budgets, now)
            if isinstance(removal, Unremovable):
                self.unremovable.add(name, removal.reason, removal.blocking)
                timeout = context.options.unremovable_node_recheck_timeout
                self.unremovable.remember(name, now + timeout)
                continue
            destinations.discard(name)
            budgets.subtract(removal.pods)
            found.append(removal)
            group = context.group_options(context.group_of(removal.node))
            counted += not group.zero_or_max_node_scaling
        self.unneeded.update(found, now)

    def _unneeded_limit(self) -> int:
        """Return the number of unneeded nodes to search for: as many as can be deleted soon.

        upstream: planner.go: unneededNodesLimit
        """
        parallelism = self._context.options.max_scale_down_parallelism
        known = len(self.unneeded.by_name) + len(self.unneeded.since_before)
        limit = known + 2 * parallelism
        periods = max(self._unneeded_time, self._interval_min) // self._interval_min
        return min(limit, parallelism * periods + parallelism)

    # --- deletion --------------------------------------------------------------------------

    def nodes_to_delete(self, deletions: DeletionsInProgress, now: Instant) -> NodesToDelete:
        """Return the unneeded nodes to delete now; record why the other unneeded nodes are kept.

        upstream: planner.go: NodesToDelete
        """
        context = self._context
        left = MinimumLeft(
            resource_limits(context.options),
            NodeResources(context.provider),
            context.nodes_with_group,
            now,
        )
        found, refused = self.unneeded.removable_at(now, left, deletions.by_group)
        for name, reason in refused.items():
            self.unremovable.add(name, reason)
        empty = [one for one in found if one.is_empty]
        drain = [one for one in found if not one.is_empty]
        drain.sort(key=lambda one: one.is_risky)
        chosen = self._without_waiting(self._whole_groups([*empty, *drain]))
        return NodesToDelete(
            tuple(one for one in chosen if one.is_empty),
            tuple(one for one in chosen if not one.is_empty),
        )

    def _without_waiting(self, nodes: Sequence[NodeToBeRemoved]) -> list[NodeToBeRemoved]:
        """Return the `nodes` whose removal need not wait until a pod completes.

        For each other node, the reason BLOCKED_BY_ON_COMPLETION_POD is recorded.
        """
        for one in nodes:
            if one.has_on_completion_pods:
                reason = UnremovableReason.BLOCKED_BY_ON_COMPLETION_POD
                self.unremovable.add(one.name, reason)
        return [one for one in nodes if not one.has_on_completion_pods]

    def _whole_groups(self, nodes: Sequence[NodeToBeRemoved]) -> list[NodeToBeRemoved]:
        """Return `nodes` without the nodes of incomplete atomic groups.

        An atomic group must be deleted as a whole. An atomic group is complete if the number of its
        nodes in `nodes` equals the group's target size or its number of registered nodes
        (`_registered`). The returned list ends with the nodes of atomic groups, in the order of the
        group ids.

        upstream: processors/nodes/scale_down_set_processor.go: AtomicResizeFilteringProcessor
        """
        context = self._context
        single: list[NodeToBeRemoved] = []
        by_group: dict[str, list[NodeToBeRemoved]] = {}
        for one in nodes:
            group = context.group_of(one.node)
            if group is not None and context.group_options(group).zero_or_max_node_scaling:
                by_group.setdefault(group.id, []).append(one)
            else:
                single.append(one)
        groups = context.groups_by_id()
        for name, members in sorted(by_group.items()):
            if len(members) in (groups[name].target_size(), self._registered(groups[name])):
                single += members
                continue
            for one in members:
                self.unremovable.add(one.name, UnremovableReason.ATOMIC_SCALE_DOWN_FAILED)
        return single

    def _registered(self, group: NodeGroup) -> int:
        """Return how many nodes in the snapshot are instances of `group`.

        Placeholders of upcoming nodes are not counted.

        upstream: scale_down_set_processor.go: getAllRegisteredNodesForNodeGroup
        """
        instances = {instance.id for instance in group.instances()}
        nodes = self._context.nodes_with_group()
        return sum(
            node.spec.provider_id in instances for node, placeholder in nodes if placeholder is None
        )
