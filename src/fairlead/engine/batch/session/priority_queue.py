"""Queues by a key that may change while items wait.

`PriorityQueue` is a binary heap: it compares keys when items are put in and taken out, and does not
notice what changes in between. Where that shows, exactness needs the same heap as upstream's (Go's
container/heap, which `heapq` is not). `FreshQueue` compares all keys whenever an item is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Key = Callable[[Any], Any]


class ItemQueue(Protocol[Item]):
    """What both kinds can do."""

    def __len__(self) -> int:
        """How many items wait."""
        ...

    def push(self, item: Item) -> None:
        """Let `item` wait."""
        ...

    def pop(self) -> Item:
        """Take the item with the smallest key. Raises IndexError when none waits."""
        ...


class PriorityQueue(Generic[Item]):
    """A heap (pkg/scheduler/util/priority_queue.go)."""

    def __init__(self, key: Key) -> None:
        """Smaller keys first."""
        self._key = key
        self._heap: list[Item] = []

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._heap)

    def push(self, item: Item) -> None:
        """Let `item` wait."""
        heap = self._heap
        heap.append(item)
        at = len(heap) - 1
        while at:
            above = (at - 1) // 2
            if not self._is_before(at, above):
                return
            heap[at], heap[above] = heap[above], heap[at]
            at = above

    def pop(self) -> Item:
        """Take the first item."""
        heap = self._heap
        heap[0], heap[-1] = heap[-1], heap[0]
        found = heap.pop()
        self._sink()
        return found

    def _sink(self) -> None:
        heap, at = self._heap, 0
        while (below := 2 * at + 1) < len(heap):
            if below + 1 < len(heap) and self._is_before(below + 1, below):
                below += 1
            if not self._is_before(below, at):
                return
            heap[at], heap[below] = heap[below], heap[at]
            at = below

    def _is_before(self, left: int, right: int) -> bool:
        return bool(self._key(self._heap[left]) < self._key(self._heap[right]))


class FreshQueue(Generic[Item]):
    """Few items, whose keys change often."""

    def __init__(self, key: Key) -> None:
        """Smaller keys first; keys must be distinct."""
        self._key = key
        self._items: list[Item] = []

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    def push(self, item: Item) -> None:
        """Let `item` wait."""
        self._items.append(item)

    def pop(self) -> Item:
        """Take the item that is first now."""
        keys = [self._key(item) for item in self._items]
        return self._items.pop(keys.index(min(keys)))
