"""SumsCache: plugin results that nodes with equal capacity and equal sums of requests share.

Some plugins read only a node's capacity, the sums of its pods' requests, and the number of its pods
(`reads_only_sums`). Many nodes have the same capacity, and the pods of a workload have the same
requests. So after most placements, a node has sums that another node had before. The results cached
for that other node are then used again.

Example: 1,000 empty nodes with 4 cores. After the first pod of 1 core, NodeResourcesFit scores a
node with 3 free cores. Each of the next 999 pods goes to another empty node. That node then has 3
free cores too, so its new score is found in the cache.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from fairlead.engine.framework.points import FilterPoint, ScorePoint
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable

Result = TypeVar("Result")
SIZE_MIN: Final = 64


class SumsCache(Generic[Result]):
    """Plugin results for nodes, keyed by capacity, sums of the pods' requests, and pod count.

    `size_max` bounds the number of results.
    """

    def __init__(self, table: NodeTable, size_max: int) -> None:
        self._table = table
        self._size_max = max(size_max, SIZE_MIN)
        self._epoch = table.resource_epoch
        self._key: tuple[int, ...] = ()
        self._results: dict[tuple[int, ...], Result] = {}

    def find(self, node: NodeInfo) -> Result | None:
        """Return the cached result for `node`, or None.

        The cache key is the node's capacity, the sums of its pods' requests, and the number of its
        pods. If no result is cached, the caller computes the result and passes it to `keep`.
        """
        if self._epoch != self._table.resource_epoch:
            self._results.clear()
            self._epoch = self._table.resource_epoch
        self._key = key = (
            node.capacity,
            len(node.pods),
            node.nonzero_cpu,
            node.nonzero_memory,
            *node.requested,
        )
        return self._results.get(key)

    def keep(self, result: Result) -> None:
        """Keep `result` for the node that was passed to the last call of `find`.

        The node's sums must not have changed since that call.
        """
        if len(self._results) >= self._size_max:
            self._results.clear()
        self._results[self._key] = result


def read_only_sums(*points: FilterPoint | ScorePoint) -> bool:
    """Return whether all plugins of `points` read only the node data that `SumsCache` compares."""
    return all(getattr(point.plugin, "reads_only_sums", False) for point in points)
