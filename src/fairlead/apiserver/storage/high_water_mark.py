"""HighWaterMark: the newest state of a write-ahead log, in a file beside it.

A log that was truncated, deleted or replaced by an older copy looks like a valid log with fewer
changes. The mark reveals this. After each commit it contains the newest version, the time of this
version, and a checksum over all changes (see `chained`). With `synchronous=FULL` (see `SqliteLog`),
the log is synced at each commit, and the mark is written without a sync. After a power failure, the
mark may therefore be older than the log, but never newer.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Final

from msgspec import Struct

# Version, type of change, resource, namespace, name, and the object as JSON text.
LoggedRow = tuple[int, str, str, str, str, bytes]

_SIZE: Final = 80
_DIGEST_BYTES: Final = 8
# hashlib releases the GIL for longer texts, and reacquiring it takes a thousand times as long
# as the hash.
_HASHED_BYTES_MAX: Final = 2_047


class Mark(Struct, frozen=True):
    """A point in the history of a log; `time` is in ns since 1970, 0 if unknown."""

    version: int
    time: int
    checksum: int


class HighWaterMark:
    """Reads and writes the file at `path`, which contains the Mark of a log."""

    def __init__(self, path: Path) -> None:
        """Store the path; the first write opens the file."""
        self._path = path
        self._file = -1

    def read(self) -> Mark | None:
        """Return the mark; None if it does not exist, is incomplete or is damaged."""
        try:
            words = self._path.read_bytes().split()
            version, time, checksum, check = (int(word) for word in words)
        except (OSError, ValueError):
            return None
        mark = Mark(version, time, checksum)
        return mark if check == _check(mark) else None

    def write(self, mark: Mark) -> None:
        """Replace the mark. Raises OSError."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        line = f"{mark.version} {mark.time} {mark.checksum} {_check(mark)}"
        os.pwrite(self._file, line.ljust(_SIZE).encode() + b"\n", 0)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def chained(checksum: int, row: LoggedRow) -> int:
    """Return the checksum (63 bits) after `row`, given the `checksum` of all rows before it."""
    version, type_, resource, namespace, name, text = row
    head = f"{checksum}\0{version}\0{type_}\0{resource}\0{namespace}\0{name}\0"
    digest = blake2b(head.encode(), digest_size=_DIGEST_BYTES)
    for first in range(0, len(text), _HASHED_BYTES_MAX):
        digest.update(text[first : first + _HASHED_BYTES_MAX])
    return int.from_bytes(digest.digest()) >> 1


def _check(mark: Mark) -> int:
    """Return the checksum by which `read` detects a damaged mark."""
    text = f"{mark.version} {mark.time} {mark.checksum}".encode()
    return int.from_bytes(blake2b(text, digest_size=4).digest())
