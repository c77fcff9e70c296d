"""A private temporary folder that is removed even if the command is killed.

The process that uses the folder holds a lock on a file in it. The kernel releases the lock when the
process ends. Each `fairlead up` first removes the folders of this user in which no process holds
the lock. The lock is taken before the lock file gets its final name. So a new folder is never
mistaken for an abandoned one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "fairlead-"
LOCK: Final = "lock"
_NEW_LOCK: Final = "lock.new"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that only this user can read; remove it when the `with` block ends."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        held = os.open(folder / _NEW_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / _NEW_LOCK).rename(folder / LOCK)
            yield folder
        finally:
            os.close(held)


def remove_abandoned() -> None:
    """Remove the private folders of this user's killed processes."""
    parent = Path(tempfile.gettempdir())
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        with suppress(OSError):  # Another process is removing it, or it is not accessible.
            if _is_private(folder.lstat(), stat.S_IFDIR):
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    """Remove `folder`, unless other users own or can access its lock file.

    Raises OSError if `folder` contains no lock file, or if the lock is held.
    """
    held = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _is_private(os.fstat(held), stat.S_IFREG):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(held)


def _is_private(found: os.stat_result, kind: int) -> bool:
    """Return whether `found` describes a file of type `kind` that only this user can access."""
    others = stat.S_IRWXG | stat.S_IRWXO
    is_own = found.st_uid == os.getuid() and not found.st_mode & others
    return is_own and stat.S_IFMT(found.st_mode) == kind
