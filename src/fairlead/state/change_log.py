"""ChangeLog: which rows changed since I last looked.

Readers keep a position each. The log is bounded; a reader that fell behind its start is told so
and looks at everything once.
"""

from __future__ import annotations

from typing import Final

_LENGTH_MAX: Final = 1 << 16


class ChangeLog:
    """An append-only log of row numbers with a moving start."""

    def __init__(self) -> None:
        """Start empty, at position 0."""
        self._rows: list[int] = []
        self._start = 0

    @property
    def position(self) -> int:
        """The position after the newest entry."""
        return self._start + len(self._rows)

    def append(self, row: int) -> None:
        """Note that `row` changed."""
        self._rows.append(row)
        if len(self._rows) > _LENGTH_MAX:
            half = _LENGTH_MAX // 2
            del self._rows[:half]
            self._start += half

    def since(self, position: int) -> list[int] | None:
        """The rows that changed after `position`, oldest first, with repetitions.

        None when the log no longer reaches back that far.
        """
        if position < self._start:
            return None
        return self._rows[position - self._start :]
