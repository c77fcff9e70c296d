"""balance: distributes new nodes over similar groups so that their sizes become equal.

upstream: processors/nodegroupset/balancing_processor.go: BalanceScaleUpBetweenGroups
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup


@dataclass(frozen=True, slots=True)
class ScaleUpInfo:
    """A group that grows from `current` to `new` nodes."""

    group: str
    current: int
    new: int
    maximum: int

    def __str__(self) -> str:
        """Return the text for events."""
        return f"{{{self.group} {self.current}->{self.new} (max: {self.maximum})}}"


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> list[ScaleUpInfo]:
    """Return the new sizes of `groups`, in order of execution.

    Groups that do not grow are left out of the result.

    Nodes go one by one to the smallest group. Groups are sorted by size; groups before `start` are
    full; groups between `start` and `at` already have the size of their successor.

    Example: sizes 1, 2, 5 and four new nodes: 2, 3, 5 after two, 3, 4, 5 after four.
    """
    sizes = [
        [group.target_size(), index]
        for index, group in enumerate(groups)
        if group.target_size() < group.max_size
    ]
    room = sum(groups[index].max_size - size for size, index in sizes)
    left = min(new_nodes, room)
    sizes.sort(key=lambda entry: entry[0])
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
