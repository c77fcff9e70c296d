"""balance: distributes new nodes over similar groups, so that their sizes differ little.

upstream: processors/nodegroupset/balancing_processor.go: BalanceScaleUpBetweenGroups
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup


class ScaleUpInfo(Struct, frozen=True):
    """A group that grows from `current` to `new` nodes."""

    group: str
    current: int
    new: int
    maximum: int

    def __str__(self) -> str:
        """Return the text that events show for the growth of the group."""
        return f"{{{self.group} {self.current}->{self.new} (max: {self.maximum})}}"


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> list[ScaleUpInfo]:
    """Return the groups that grow and their new sizes, in order of execution.

    The `new_nodes` nodes are added one by one, each to the group that is smallest at that moment.
    If several groups are equally small, the group that was smallest before the scale-up comes
    first. If these groups were equally small before, too, the first one in `groups` comes first.
    When a group has reached its maximum size, it does not grow any more, and the order of equally
    small groups can change.

    Example: groups with 1, 2 and 5 nodes get four new nodes. Their sizes are 3, 2 and 5 after two
    new nodes, and 4, 3 and 5 after four new nodes.
    """
    sizes = [
        [group.target_size(), index]
        for index, group in enumerate(groups)
        if group.target_size() < group.max_size
    ]
    room = sum(groups[index].max_size - size for size, index in sizes)
    left = min(new_nodes, room)
    sizes.sort(key=lambda entry: entry[0])
    # `sizes` is sorted. Groups before `start` have their maximum size. Groups from `start` up to
    # `at` have grown in this round.
    start = at = 0
    while left > 0:
        entry = sizes[at]
        if entry[0] < groups[entry[1]].max_size:
            entry[0] += 1
            left -= 1
        else:
            sizes[start], sizes[at] = sizes[at], sizes[start]
            start += 1
        if at < len(sizes) - 1 and sizes[at][0] > sizes[at + 1][0]:
            at += 1
        else:
            at = start
    found = []
    for size, index in sizes:
        group = groups[index]
        current = group.target_size()
        if size != current:
            found.append(ScaleUpInfo(group.id, current, size, group.max_size))
    return found
