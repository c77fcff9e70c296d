"""Output files: checked before a run, and then written completely or not at all."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.mapped_file import require_unchanged_files
from fairlead.worlds.standard_stream import is_standard_stream, standard_stream

_MARK_BYTES: Final = 64 << 10  # The mark that identifies a snapshot file is in its last bytes.
_COMMAND: Final = b'{"t_ns":'
_PREFIX_BYTES: Final = 200  # A longer temporary name can exceed the 255 bytes of a file name.


def require_writable(option: str, path: Path | None, *, in_place: bool = False) -> None:
    """Raise InputError if `path` cannot be written; the error's message names `option`.

    If `in_place` is False, the caller will replace an existing file at `path`, as AtomicFile does.
    So the directory of `path` must be writable, too. Does nothing if `path` is None.
    """
    if path is None:
        return
    try:
        path.absolute()
    except FileNotFoundError:
        problem = f"{path} cannot be written: the current directory does not exist"
        raise InputError(option, problem) from None
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as cause:  # For example, the name is too long, or its links form a loop.
        raise InputError(option, f"{path} cannot be written: {cause.strerror}") from None
    folder = path.parent
    if path.is_dir():
        raise InputError(option, f"{path} is a directory")
    if not folder.is_dir():
        raise InputError(option, f"there is no directory {folder}")
    is_created = not path.exists() or (path.is_file() and not in_place)
    if is_created and not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        problem = f"{path} cannot be written: no permission to create a file in its directory"
        raise InputError(option, problem)
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(option, f"{path} cannot be written: Permission denied")


def is_own_output(path: Path) -> bool:
    """Return True if `path` is a file that may be replaced: empty, or an output of Fairlead."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        content = file.read(_MARK_BYTES)
        file.seek(max(0, path.stat().st_size - _MARK_BYTES))
        content += file.read()
    return not content or b"fairlead" in content.lower() or content.startswith(_COMMAND)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of `path`; if this raises OSError, the old content remains."""
    with AtomicFile(path) as file:
        file.write(content)


class AtomicFile(AbstractContextManager["AtomicFile"]):
    """A file that gets its final name only if the `with` block ends without an error.

    If `path` is a symbolic link, its target is replaced. Devices, pipes and the process's own
    standard output are written directly, because they cannot be replaced.
    """

    def __init__(self, path: Path, *, is_private: bool = False) -> None:
        """Prepare to write `path`; nothing is written before the `with` block is entered.

        If `is_private` is set, only the user can read the new file.
        """
        self._is_stream = is_standard_stream(path) or (path.exists() and not path.is_file())
        # The target of /dev/stdout can be a pipe, whose name (pipe:[5]) is not a path.
        self._path = path if self._is_stream else path.resolve()
        self._is_private = is_private
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open a temporary file in the directory of the final path.

        If the path is a device, a pipe or standard output, open it directly.
        """
        if self._is_stream:
            stream = standard_stream(self._path)
            self._file = self._path.open("wb") if stream is None else os.fdopen(stream, "wb")
            return self
        from tempfile import NamedTemporaryFile

        name = os.fsdecode(os.fsencode(self._path.name)[:_PREFIX_BYTES])
        try:
            self._file = NamedTemporaryFile(dir=self._path.parent, prefix=f".{name}.", delete=False)
        except OSError as cause:
            raise self._named(cause) from None
        return self

    def write(self, content: bytes) -> None:
        """Append `content`; on failure, raise OSError with the final path as its `filename`."""
        assert self._file is not None
        try:
            self._file.write(content)
        except OSError as cause:
            raise self._named(cause) from None

    def flush(self) -> None:
        """Write the buffered content; on failure, raise OSError as `write` does.

        Call this before writing a second file, so that the second file is not written if this file
        cannot be written.
        """
        assert self._file is not None
        try:
            self._file.flush()
        except OSError as cause:
            raise self._named(cause) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Rename the temporary file to its final name, or remove it after an error.

        Raises OSError, whose `filename` is the final path, if the file cannot be written or
        renamed. Raises InputError if the command's input file has been changed since it was read
        (`mapped_file`).
        """
        assert self._file is not None
        try:
            self._file.close()  # Closing the file writes its buffered content.
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
        try:
            require_unchanged_files()
        except InputError:
            self._discard()
            raise
        try:
            if not self._is_private:  # A temporary file is readable only by the user.
                mask = os.umask(0)
                os.umask(mask)
                Path(self._file.name).chmod(0o666 & ~mask)
            Path(self._file.name).replace(self._path)
        except OSError as cause:
            self._discard()
            raise self._named(cause) from None

    def _discard(self) -> None:
        """Remove the temporary file."""
        if self._file is not None and not self._is_stream:
            Path(self._file.name).unlink(missing_ok=True)

    def _named(self, cause: OSError) -> OSError:
        """Return a copy of the error `cause` with the final path instead of the temporary path."""
        return OSError(cause.errno, cause.strerror, str(self._path))
