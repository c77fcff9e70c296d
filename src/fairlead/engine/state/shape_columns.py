"""ShapeColumns: requests of many pod specs (`Shape`) as columns, to evaluate one node for all.

    columns (int64, [resource, shape]):  wanted      UNWANTED if not requested
    columns (int64, [2, shape]):         requested, nonzero_requests      (cpu, memory)
    largest[resource]                    the maximum of `wanted`

Invariant: entry i of every column belongs to `shapes[i]`. If a shape is removed, the last shape
takes its place. So entries 0 to len(shapes) - 1 are always in use.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.state.resource_columns import ResourceColumns
from fairlead.engine.state.shape import Shape

Ints = npt.NDArray[np.int64]

UNWANTED: Final = -(1 << 62)  # less than any node can have free, however overcommitted
_CAPACITY_INITIAL: Final = 16


class ShapeColumns:
    """The requests of `shapes` as columns."""

    def __init__(self, resources: ResourceColumns) -> None:
        """Start without shapes; `resources` is the cluster's resource table."""
        self._resources = resources
        self.shapes: list[Shape] = []
        self._allocate(_CAPACITY_INITIAL, len(resources))
        self._view()

    def _allocate(self, capacity: int, resources: int) -> None:
        self._wanted: Ints = np.full((resources, capacity), UNWANTED, np.int64)
        self._requested: Ints = np.zeros((2, capacity), np.int64)
        self._nonzero: Ints = np.zeros((2, capacity), np.int64)

    def _view(self) -> None:
        """Set the public columns, which have one entry per shape in use.

        cpu is in millicores, and memory is in bytes.
        """
        used = len(self.shapes)
        self.wanted: Ints = self._wanted[:, :used]
        self.requested: Ints = self._requested[:, :used]
        self.nonzero_requests: Ints = self._nonzero[:, :used]
        self.largest: list[int] = self.wanted.max(axis=1, initial=UNWANTED).tolist()

    def add(self, shape: Shape) -> None:
        """Append `shape`."""
        self.shapes.append(shape)
        resources, capacity = self._wanted.shape
        if len(self.shapes) > capacity or len(self._resources) > resources:
            self._allocate(max(capacity, 2 * len(self.shapes)), len(self._resources))
            for at, known in enumerate(self.shapes):
                self._write(at, known)
        else:
            self._write(len(self.shapes) - 1, shape)
        self._view()

    def remove(self, at: int) -> None:
        """Remove the shape at index `at`; the last shape moves to that index."""
        last = self.shapes.pop()
        if at < len(self.shapes):
            self.shapes[at] = last
            self._write(at, last)
        self._view()

    def _write(self, at: int, shape: Shape) -> None:
        self._wanted[:, at] = UNWANTED
        for column, amount in shape.wanted:
            self._wanted[column, at] = amount
        self._requested[:, at] = shape.milli_cpu, shape.memory
        self._nonzero[:, at] = shape.nonzero_requests
