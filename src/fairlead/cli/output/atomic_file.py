"""Output files: checked before the run, and written after it, completely or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from fairlead.whatif.input.error import InputError

_MARK_BYTES: Final = 64 << 10  # the mark of a snapshot is at its end
_COMMAND: Final = b'{"t_ns":'


def require_writable(option: str, path: Path | None) -> None:
    """Raise InputError, naming `option`, if `path` cannot be written."""
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        raise InputError(option, f"{path} is a directory")
    if not folder.is_dir():
        raise InputError(option, f"there is no directory {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(option, f"{path} cannot be written: Permission denied")


def is_own_output(path: Path) -> bool:
    """Return whether the file is empty, or an output of Fairlead, so that it may be replaced."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        content = file.read(_MARK_BYTES)
        file.seek(max(0, path.stat().st_size - _MARK_BYTES))
        content += file.read()
    return not content or b"fairlead" in content.lower() or content.startswith(_COMMAND)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of `path`; an OSError leaves the old content in place."""
    with AtomicFile(path) as file:
        file.write(content)


class AtomicFile(AbstractContextManager["AtomicFile"]):
    """A file that gets its final name only when the `with` block ends without an error.

    If `path` is a symbolic link, its target is replaced. Devices and pipes are written to directly,
    because they cannot be replaced.
    """

    def __init__(self, path: Path) -> None:
        """Store the path; nothing is written before `with` is entered."""
        self._path = path.resolve()
        self._is_stream = self._path.exists() and not self._path.is_file()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open a temporary file in the same directory."""
        if self._is_stream:
            self._file = self._path.open("wb")
            return self
        self._file = tempfile.NamedTemporaryFile(
            dir=self._path.parent, prefix=f".{self._path.name}.", delete=False
        )
        return self

    def write(self, content: bytes) -> None:
        """Append `content`. Raises OSError that names the path."""
        assert self._file is not None
        try:
            self._file.write(content)
        except OSError as cause:
            raise self._named(cause) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Rename the temporary file to its final name, or remove it after an error."""
        assert self._file is not None
        try:
            self._file.close()  # which writes what is buffered
        except OSError as cause:
            self._discard()
            if error is None:
                raise self._named(cause) from None
            return
        if error is not None:
            self._discard()
            return
        if self._is_stream:
            return
        mask = os.umask(0)
        os.umask(mask)
        # temporary files are readable only by the user; results are not restricted
        Path(self._file.name).chmod(0o666 & ~mask)
        Path(self._file.name).replace(self._path)

    def _discard(self) -> None:
        """Remove the temporary file."""
        if self._file is not None and not self._is_stream:
            Path(self._file.name).unlink(missing_ok=True)

    def _named(self, cause: OSError) -> OSError:
        """Return `cause`, such as a full disk, with the path that was to be written."""
        return OSError(cause.errno, cause.strerror, str(self._path))
