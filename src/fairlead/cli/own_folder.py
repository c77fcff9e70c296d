"""A folder for as long as a command runs, which is swept up even if the command is killed.

Who makes one holds a lock in it, which dies with the process, however that ends; whoever comes
next sweeps up the folders whose lock nobody holds. Only those are touched that are this user's own
and have such a lock. It is held before it has its name, so that nobody takes a new folder for one
that was left.
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
def own_folder() -> Iterator[Path]:
    """A new folder that nobody else can read; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        held = os.open(folder / _NEW_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / _NEW_LOCK).rename(folder / LOCK)
            yield folder
        finally:
            os.close(held)


def sweep() -> None:
    """Remove the folders of this user whose makers have been killed."""
    parent = Path(tempfile.gettempdir())
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        with suppress(OSError):  # somebody else is sweeping, or it is not for us to judge
            if _is_private(folder.lstat(), stat.S_IFDIR):
                _sweep_if_left(folder)


def _sweep_if_left(folder: Path) -> None:
    """Raises OSError where it was not left: there is no lock, or somebody holds it."""
    held = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _is_private(os.fstat(held), stat.S_IFREG):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(held)


def _is_private(found: os.stat_result, kind: int) -> bool:
    """Whether that is of this kind, this user's, and closed to all others."""
    others = stat.S_IRWXG | stat.S_IRWXO
    is_own = found.st_uid == os.getuid() and not found.st_mode & others
    return is_own and stat.S_IFMT(found.st_mode) == kind
