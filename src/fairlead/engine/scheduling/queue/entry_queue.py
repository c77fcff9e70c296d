"""EntryQueue: the pods of one queue in order, with cheap entries for pods that arrive in order.

Most pods have equal priorities, so they arrive in the order in which they will be scheduled. A
deque keeps the entries that arrive in order, and a heap keeps only the other entries. A deque and a
heap are faster than one heap with all entries.

    deque    [3, 5, 8]      an entry that is not below the last one is appended
    heap     [4, 7]         all others
    order    3 4 5 7 8      next is the lower of the deque's first and the heap's first entry

Entries are not removed when their pods leave the queue. `QueuedPod.place` and `token` tell which
entries are valid; an invalid entry is dropped when it becomes the first entry.
"""

from __future__ import annotations

import heapq
from collections import deque

from fairlead.engine.scheduling.queue.queued_pod import QueuedPod, QueueName

Entry = tuple[tuple[int, ...], int, QueuedPod]


class EntryQueue:
    """The pods of one of the scheduling queues, in ascending order of the key given to `push`.

    `count` is the number of entries, including invalid entries (see the module).
    """

    def __init__(self, place: QueueName) -> None:
        """Start without pods."""
        self._place = place
        self.count = 0
        self._in_order: deque[Entry] = deque()
        self._heap: list[Entry] = []

    def push(self, queued: QueuedPod, key: tuple[int, ...], token: int) -> None:
        """Add an entry for `queued`, sorted by `key`; earlier entries of the pod become invalid.

        `token` must differ from the tokens of all earlier entries.
        """
        queued.place, queued.token = self._place, token
        self.count += 1
        entry = (key, token, queued)
        if not self._in_order or entry > self._in_order[-1]:
            self._in_order.append(entry)
        else:
            heapq.heappush(self._heap, entry)

    def first(self) -> QueuedPod | None:
        """Return the first pod; None if there is none."""
        in_order, heap = self._in_order, self._heap
        while in_order or heap:
            # The heap is almost always empty.
            entries = in_order if not heap or (in_order and in_order[0] < heap[0]) else heap
            _, token, queued = entries[0]
            if queued.token == token and queued.place is self._place:
                return queued
            self._drop()
        return None

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod, None if there is none."""
        queued = self.first()
        if queued is not None:
            self._drop()
        return queued

    def _drop(self) -> None:
        """Remove the first entry, valid or not; there must be one."""
        self.count -= 1
        in_order, heap = self._in_order, self._heap
        if not heap or (in_order and in_order[0] < heap[0]):
            in_order.popleft()
        else:
            heapq.heappop(heap)
