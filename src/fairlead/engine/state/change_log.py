"""ChangeLog: a bounded log of changes that several readers follow independently.

Each reader stores its own position. If entries after that position have been dropped, the reader
gets None and must recompute everything.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
_LENGTH_MAX: Final = 1 << 16


class ChangeLog(Generic[Item]):
    """A log of changed items, such as rows or node names.

    When the log is full, its oldest entries are dropped. `position` is the position after the
    newest entry; only `append` changes it.
    """

    def __init__(self) -> None:
        """Start empty, at position 0."""
        self._items: list[Item] = []
        self._start = 0
        self.position = 0

    def append(self, item: Item) -> None:
        """Log that `item` changed."""
        self._items.append(item)
        self.position += 1
        if len(self._items) > _LENGTH_MAX:
            half = _LENGTH_MAX // 2
            del self._items[:half]
            self._start += half

    def since(self, position: int) -> list[Item] | None:
        """Return the items that changed after `position`, oldest change first; items may repeat.

        Returns None if the log no longer contains all changes after `position`.
        """
        if position < self._start:
            return None
        return self._items[position - self._start :]
