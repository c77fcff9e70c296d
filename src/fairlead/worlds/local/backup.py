"""Backups of a data directory: one tar file with the objects, the CA, the keys and the users."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, Protocol, cast

from fairlead.worlds.local.data_dir import OBJECTS, backup_files

_COPY_MODE: Final = 0o600


class BackupError(Exception):
    """Raised if a backup cannot be read, or cannot be restored to the given directory."""


class WritableFile(Protocol):
    """A file that is open for writing."""

    def write(self, content: bytes, /) -> object:
        """Append `content`. Raises OSError."""
        ...


def write_backup(
    directory: Path, copy_objects: Callable[[Path], None], target: WritableFile
) -> None:
    """Write a backup of `directory` to `target`.

    `copy_objects(path)` writes a consistent copy of the stored objects to `path`. Raises OSError.
    """
    with TemporaryDirectory(dir=directory, prefix=".backup-") as scratch:
        copy = Path(scratch) / OBJECTS
        copy_objects(copy)
        # The mode w| writes without seeking.
        with tarfile.open(fileobj=cast("IO[bytes]", target), mode="w|") as backup:
            backup.add(copy, OBJECTS)
            for name in backup_files():
                backup.add(directory / name, name)


def restore_backup(source: Path, directory: Path) -> None:
    """Restore the backup in the file `source` to `directory`, which must be absent or empty.

    Raises BackupError if `directory` is not empty or `source` is not a backup. Raises OSError if a
    file cannot be read or written.
    """
    if directory.exists() and any(directory.iterdir()):
        raise BackupError(f"{directory}: is not empty")
    names = (OBJECTS, *backup_files())
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise BackupError(f"{source}: is not a regular file")  # Opening a pipe can wait forever.
    try:
        with tarfile.open(source) as backup:
            contents = {name: _content(backup, name) for name in names}
    except (tarfile.TarError, KeyError, EOFError, LZMAError, zlib.error):
        raise BackupError(f"{source}: is not a backup of fairlead up") from None
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The files are renamed after all of them are written, the objects last. Otherwise an
    # interrupted command could leave only some of the files, and `fairlead up` would start an empty
    # cluster with them.
    written = {directory / f".{name}.restored": directory / name for name in reversed(names)}
    try:
        for partial, path in written.items():
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _COPY_MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(contents[path.name])
    except BaseException:  # The disk is full, or the user has interrupted the command.
        for partial in written:
            partial.unlink(missing_ok=True)
        if is_new:
            directory.rmdir()
        raise
    for partial, path in written.items():
        partial.replace(path)


def _content(backup: tarfile.TarFile, name: str) -> bytes:
    """Return the content of the file `name` in the tar file. Raises KeyError."""
    member = backup.extractfile(name)
    if member is None:
        raise KeyError(name)
    with member:
        return member.read()
