"""PriorityQueue and UnsortedQueue: queues whose keys may change while items wait.

`PriorityQueue` is a binary heap. If a key changes between `push` and `pop`, the order of the items
depends on how the heap moves them. Therefore `PriorityQueue` moves items exactly like Go's
container/heap, so that the order is the same as in kube-batch. Python's `heapq` works differently.
`UnsortedQueue` compares all keys in every `pop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Key = Callable[[Any], Any]


class ItemQueue(Protocol[Item]):
    """The interface of PriorityQueue and UnsortedQueue."""

    def __len__(self) -> int: ...

    def push(self, item: Item) -> None:
        """Add `item`."""
        ...

    def pop(self) -> Item:
        """Remove and return the first item. The queue must not be empty."""
        ...


class PriorityQueue(Generic[Item]):
    """A binary heap that works like kube-batch's (pkg/scheduler/util/priority_queue.go)."""

    def __init__(self, key: Key) -> None:
        """Order items by `key`, the smallest first."""
        self._key = key
        self._heap: list[Item] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: Item) -> None:
        """Add `item`."""
        heap, own = self._heap, self._key(item)
        heap.append(item)
        at = len(heap) - 1
        while at:
            above = (at - 1) // 2
            if not own < self._key(heap[above]):
                return
            heap[at], heap[above] = heap[above], heap[at]
            at = above

    def pop(self) -> Item:
        """Remove and return the first item. Raises IndexError if the queue is empty."""
        heap = self._heap
        heap[0], heap[-1] = heap[-1], heap[0]
        found = heap.pop()
        if heap:
            self._sink()
        return found

    def _sink(self) -> None:
        """Move the first item down to its place; no key may change during the call."""
        heap, at, key_of = self._heap, 0, self._key
        own = key_of(heap[0])
        while (below := 2 * at + 1) < len(heap):
            key = key_of(heap[below])
            if below + 1 < len(heap):
                right = key_of(heap[below + 1])
                if right < key:
                    below, key = below + 1, right
            if not key < own:
                return
            heap[at], heap[below] = heap[below], heap[at]
            at = below


class UnsortedQueue(Generic[Item]):
    """A queue whose `pop` compares the current keys of all items.

    Use this class for a small number of items whose keys change often.
    """

    def __init__(self, key: Key) -> None:
        """Order items by `key`, the smallest first; keys must be distinct."""
        self._key = key
        self._items: list[Item] = []

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        """Add `item`."""
        self._items.append(item)

    def pop(self) -> Item:
        """Remove and return the item with the smallest current key. The queue must not be empty."""
        keys = [self._key(item) for item in self._items]
        return self._items.pop(keys.index(min(keys)))
