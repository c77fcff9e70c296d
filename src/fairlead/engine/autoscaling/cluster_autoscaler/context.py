"""AutoscalingContext: the state that all parts of the autoscaler share.

upstream: context/autoscaling_context.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
    NodeGroup,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.registry import (
    ClusterStateRegistry,
)
from fairlead.engine.autoscaling.cluster_autoscaler.event import EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    AutoscalingOptions,
    NodeGroupOptions,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant


def _first(_count: int) -> int:
    return 0


class AutoscalingContext(Struct):
    """The state that all parts of the autoscaler share."""

    options: AutoscalingOptions
    provider: CloudProvider
    listers: Listers
    snapshot: ClusterSnapshot  # also contains nodes that were requested but do not exist yet
    commands: list[Command]  # each part appends its commands
    events: EventLog
    registry: ClusterStateRegistry
    pick: Callable[[int], int] = _first  # chooses among equal expansion options
    # Returns the text of the priority expander's ConfigMap.
    priorities: Callable[[], str | None] = lambda: None
    # The cloud provider's name for each node group, by id. A group whose name is equal to its id is
    # left out.
    provider_names: Mapping[str, str] = field(default_factory=dict)
    # The node group of each node in `snapshot` that does not exist yet, by the node's name.
    placeholders: dict[str, str] = field(default_factory=dict)
    # The time of the last increase of each node group.
    scale_up_times: dict[str, Instant] = field(default_factory=dict)

    def group_of(self, node: Node) -> NodeGroup | None:
        """Return the node group of `node`; None if `node` is in no node group."""
        return self.provider.node_group_for(node.spec.provider_id)

    def groups_by_id(self) -> Mapping[str, NodeGroup]:
        """Return all node groups by id, in the provider's order."""
        return {group.id: group for group in self.provider.node_groups()}

    def group_options(self, group: NodeGroup | None) -> NodeGroupOptions:
        """Return the options of `group`; if `group` is None, return the default options."""
        return self.options.defaults if group is None else self.registry.group_options(group)

    def nodes_with_group(self) -> list[tuple[Node, str | None]]:
        """Return (node, group id) for each node of the snapshot.

        The group id of a node that does not exist yet is taken from `placeholders`. The group id of
        an existing node is None here; `group_of` returns its group.
        """
        nodes = self.snapshot.nodes()
        return [(info.node, self.placeholders.get(info.name)) for info in nodes]
