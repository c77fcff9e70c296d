"""ImageLocality: prefers nodes that already have the pod's images (plugins/imagelocality).

The score of a node grows with the total size of the pod's images that the node has. The size of an
image is multiplied by the fraction of nodes that have it, so that not all pods are placed on the
few nodes with a rare image.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Locality, Rows, Scores
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

_MEBIBYTE: Final = 1024 * 1024
SUM_MIN_BYTES: Final = 23 * _MEBIBYTE
CONTAINER_MAX_BYTES: Final = 1000 * _MEBIBYTE


class ImageLocality:
    """Prefers nodes that have the pod's images (Score; never skipped, not normalised)."""

    name = "ImageLocality"
    locality = Locality.NODE

    def __init__(self, handle: Handle) -> None:
        self._table = handle.cluster.table

    def shape_key(self, shape: Shape) -> Hashable:
        """Return the images and the number of containers."""
        return (shape.images, shape.container_count)

    def epoch(self) -> object:
        """Return a value that changes if the scores of unchanged nodes may change."""
        return (self._table.images.version, self._table.count)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return a score from 0 to 100, higher if the node has more of the pod's images."""
        scaled = sum(
            self._scaled_size(image) for image in pod.shape.images if image in node.image_sizes
        )
        return image_score(scaled, pod.shape.container_count)

    def _scaled_size(self, image: str) -> int:
        """Return the image's bytes × (nodes with the image ÷ all nodes), rounded down.

        The float operations have the same order as in upstream.
        """
        size, nodes = self._table.images.size_and_nodes(image)
        return int(float(size) * (float(nodes) / float(self._table.count)))

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        if not any(table.images.size_and_nodes(image)[1] for image in pod.shape.images):
            return np.zeros(len(rows), np.int64)
        return np.array([self.score(state, pod, table.at(row)) for row in rows.tolist()], np.int64)


def image_score(sum_bytes: int, container_count: int) -> int:
    """Return a node's score, from 0 to 100.

    `sum_bytes` is the sum of the scaled sizes of those images of the pod that the node has.
    `container_count` is the number of the pod's containers, including init containers. The score is
    0 if `sum_bytes` is at most 23 MiB. Above that, it grows linearly and reaches 100 at 1,000 MiB ×
    `container_count`.

    upstream: calculatePriority
    """
    bound = CONTAINER_MAX_BYTES * container_count
    clamped = min(max(sum_bytes, SUM_MIN_BYTES), bound)
    return SCORE_MAX * (clamped - SUM_MIN_BYTES) // (bound - SUM_MIN_BYTES)
