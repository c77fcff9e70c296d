"""DiskReserve: a file that reserves disk space for writes that must succeed on a full disk.

A deletion is a write, and every start of the server writes too. When the disk is almost full, the
file is removed, and these writes use its space. Deletions and starts have separate reserves, so
that a restart works after the reserve for deletions is used up.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# Enough for SQLite's log of 16 MiB, which a start copies into the database, and for later writes.
RESERVE_BYTES: Final = 24 << 20


class DiskReserve:
    """A reserve of RESERVE_BYTES in the file at `path`."""

    def __init__(self, path: Path) -> None:
        """`path` is the file of the reserve; a complete file from an earlier run is used again."""
        self._path = path
        self._is_held = self._is_whole()

    def allocate(self) -> None:
        """Reserve the space, unless it is already reserved or the disk has too little space."""
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
        """Return whether the file has its full size, which it gets at the end of `allocate`."""
        try:
            return self._path.lstat().st_size >= RESERVE_BYTES
        except OSError:
            return False

    def release(self) -> bool:
        """Free the space; return whether any space was reserved."""
        was_held, self._is_held = self._is_held, False
        if was_held:
            with suppress(OSError):
                self._path.unlink()
        return was_held
