"""Backups of a data directory: one tar file with the objects, the CA, the keys and the users."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fairlead.worlds.local.data_dir import OBJECTS, backup_files

COPY_MODE: Final = 0o600


class BackupError(Exception):
    """Raised if a backup cannot be read, or cannot be restored to the given directory."""


def write_backup(directory: Path, copy_objects: Callable[[Path], None], target: Path) -> None:
    """Write a backup of `directory` to `target`, readable by the user only.

    `copy_objects(path)` writes a consistent copy of the stored objects to `path`. Raises OSError.
    """
    with TemporaryDirectory(dir=directory, prefix=".backup-") as scratch:
        copy = Path(scratch) / OBJECTS
        copy_objects(copy)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, COPY_MODE)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w") as backup:
            backup.add(copy, OBJECTS)
            for name in backup_files():
                backup.add(directory / name, name)


def restore_backup(source: Path, directory: Path) -> None:
    """Restore the backup in the file `source` to `directory`, which must be absent or empty.

    Raises BackupError, OSError.
    """
    if directory.exists() and any(directory.iterdir()):
        raise BackupError(f"{directory}: is not empty")
    names = (OBJECTS, *backup_files())
    try:
        with tarfile.open(source) as backup:
            contents = {name: _content(backup, name) for name in names}
    except (tarfile.TarError, KeyError, EOFError):
        raise BackupError(f"{source}: is not a backup of fairlead up") from None
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in contents.items():
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, COPY_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)


def _content(backup: tarfile.TarFile, name: str) -> bytes:
    """Return the content of the file `name` in the tar file. Raises KeyError."""
    member = backup.extractfile(name)
    if member is None:
        raise KeyError(name)
    with member:
        return member.read()
