"""DiskReserve: a file that keeps disk space for what must work on a full disk.

A deletion is a write, too, and so is a part of each start. When the disk is almost full, the file
is removed, and its space serves them. Each has a file of its own, so that a restart works after the
space for deletions is used up.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# SQLite's log of 16 MiB, which is copied into the database at a start, and what follows.
RESERVE_BYTES: Final = 24 << 20


class DiskReserve:
    """A reserve of RESERVE_BYTES in the file at `path`."""

    def __init__(self, path: Path) -> None:
        """Keep the file of an earlier run."""
        self._path = path
        self._is_held = self._is_whole()

    def take(self) -> None:
        """Occupy the space, unless it is occupied or cannot be; never a part of it."""
        if self._is_held:
            return
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(file, 0, RESERVE_BYTES)
            finally:
                os.close(file)
        self._is_held = self._is_whole()
        if not self._is_held:
            with suppress(OSError):
                self._path.unlink()

    def _is_whole(self) -> bool:
        """Return whether the file has its size, which it gets as the last step."""
        try:
            return self._path.lstat().st_size >= RESERVE_BYTES
        except OSError:
            return False

    def release(self) -> bool:
        """Free the space; return whether there was any."""
        was_held, self._is_held = self._is_held, False
        if was_held:
            with suppress(OSError):
                self._path.unlink()
        return was_held
