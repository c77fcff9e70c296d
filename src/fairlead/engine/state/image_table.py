"""ImageTable: how many nodes have each image.

Upstream keeps one size per image name, from the first node seen with it, until no node has it
(pkg/scheduler/backend/cache/cache.go: addNodeImageStates, removeNodeImageStates).
"""

from __future__ import annotations

from collections.abc import Mapping


class ImageTable:
    """`version` grows whenever an answer may have changed."""

    def __init__(self) -> None:
        """Start without images."""
        self._states: dict[str, list[int]] = {}
        self.version = 0

    def add(self, sizes: Mapping[str, int]) -> None:
        """A node with these images (name to bytes) was added. Undone by `remove`."""
        self.version += 1
        for name, size in sizes.items():
            self._states.setdefault(name, [size, 0])[1] += 1

    def remove(self, sizes: Mapping[str, int]) -> None:
        """A node with these images was removed."""
        self.version += 1
        for name in sizes:
            state = self._states[name]
            state[1] -= 1
            if not state[1]:
                del self._states[name]

    def size_and_nodes(self, name: str) -> tuple[int, int]:
        """(bytes, number of nodes) of image `name`; (0, 0) if unknown."""
        size, nodes = self._states.get(name, (0, 0))
        return size, nodes
