"""crop_nodes: limits how many of the chosen nodes are deleted at the same time.

upstream: core/scaledown/budgets/budgets.go
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    DeletionsInProgress,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.planner import NodesToDelete
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.removal import NodeToBeRemoved


class NodeGroupView(Struct, frozen=True):
    """The nodes to delete in one group.

    `batch_size` is the number of nodes of the group that must be deleted together. `batch_size` is
    0 if each node can be deleted alone.
    """

    group: str
    nodes: tuple[NodeToBeRemoved, ...]
    batch_size: int = 0


class CroppedNodes(Struct):
    """The nodes whose deletion starts in this loop, by group."""

    empty: list[NodeGroupView]
    drain: list[NodeGroupView]


class _Budget(Struct):
    """Counts the deletions that may still start, and how many of them may be drains.

    If any budget is left, the first group that must be deleted as a whole may exceed the budget.
    Without this rule, a group that is larger than the whole budget would wait forever.
    """

    all: int
    drain: int
    may_overflow: bool = True

    def take_whole(self, empty: int, drain: int) -> bool:
        """Return whether the budget allows the deletion of a whole group; if so, reduce the budget.

        The group has `empty` empty nodes and `drain` nodes to drain.
        """
        if self.all < empty + drain or self.drain < drain:
            is_used_up = self.all == 0 or (drain > 0 and self.drain == 0)
            if is_used_up or not self.may_overflow:
                return False
        self.all -= empty + drain
        self.drain -= drain
        self.may_overflow = False
        return True


def crop_nodes(
    context: AutoscalingContext, chosen: NodesToDelete, deletions: DeletionsInProgress
) -> CroppedNodes:
    """Return the nodes within --max-scale-down-parallelism and --max-drain-parallelism.

    Nodes are taken in four steps:

    1. all nodes of each group that must be deleted as a whole and has empty nodes
    2. all nodes of each other group that must be deleted as a whole
    3. the empty nodes of the remaining groups
    4. the nodes to drain in the remaining groups

    Within a step, groups keep the order in which they first appear in `chosen`. Steps 1 and 2 each
    end at the first group with more nodes than may still be deleted. Exception: the very first
    group that is taken may have more nodes, if at least one node may still be deleted.
    """
    empty, whole_empty = _by_group(context, chosen.empty)
    drain, whole_drain = _by_group(context, chosen.drain)
    options = context.options
    budget = _Budget(
        options.max_scale_down_parallelism - len(deletions.empty) - len(deletions.drained),
        options.max_drain_parallelism - len(deletions.drained),
    )
    found = CroppedNodes([], [])
    for group, nodes in whole_empty.items():
        drained = whole_drain.get(group, ())
        if not budget.take_whole(len(nodes), len(drained)):
            break
        size = len(nodes) + len(drained)
        found.empty.append(NodeGroupView(group, tuple(nodes), size))
        if drained:
            found.drain.append(NodeGroupView(group, tuple(drained), size))
    budget.drain = min(budget.all, budget.drain)
    for group, nodes in whole_drain.items():
        if group in whole_empty:
            continue
        if not budget.take_whole(0, len(nodes)):
            break
        found.drain.append(NodeGroupView(group, tuple(nodes), len(nodes)))
    views = _crop(empty, budget.all)
    found.empty += views
    budget.all -= sum(len(view.nodes) for view in views)
    found.drain += _crop(drain, min(budget.all, budget.drain))
    return found


_Groups = dict[str, list[NodeToBeRemoved]]


def _by_group(
    context: AutoscalingContext, nodes: Sequence[NodeToBeRemoved]
) -> tuple[_Groups, _Groups]:
    """Return two maps {group id: nodes}: of ordinary groups, and of groups deleted as a whole."""
    single: _Groups = {}
    whole: _Groups = {}
    for one in nodes:
        group = context.group_of(one.node)
        if group is not None:
            is_whole = context.group_options(group).zero_or_max_node_scaling
            (whole if is_whole else single).setdefault(group.id, []).append(one)
    return single, whole


def _crop(groups: _Groups, budget: int) -> list[NodeGroupView]:
    chosen: list[NodeGroupView] = []
    for group, nodes in groups.items():
        if budget < 1:
            break
        view = NodeGroupView(group, tuple(nodes[:budget]))
        chosen.append(view)
        budget -= len(view.nodes)
    return chosen
