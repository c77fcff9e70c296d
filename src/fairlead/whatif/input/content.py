"""Reads the bytes of a file or of standard input; refuses input that is larger than a limit.

A file is mapped into memory (`map_file`). A pipe is read to its end. A named pipe to which no
program writes is refused, because reading it would block forever. A device other than a terminal is
refused, because it may have no end (/dev/zero).
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import Bytes
from fairlead.whatif.input.mapped_file import map_file

# 100,000 pods take 0.6 GB as compact JSON, and 1.8 GB with kubectl's indentation.
BYTES_MAX: Final = 2 << 30
HOW_TO_RAISE: Final = "for a dump, --max-input raises the limit"
# Called with the unit ("bytes", "objects"), the number read so far, and the total (0: unknown).
OnRead = Callable[[str, int, int], None]

_CHUNK_BYTES: Final = 1 << 20
_WRITER_AWAITED_MS: Final = 5_000


def read_silently(_unit: str, _done: int, _total: int) -> None:
    """Ignore the progress of reading."""


def content_of(
    path: Path,
    bytes_max: int = BYTES_MAX,
    on_read: OnRead = read_silently,
    *,
    is_copied: bool = False,
) -> Bytes:
    """Return the content of the file `path`.

    `on_read` gets the progress of reading. If `is_copied` is set, the file is not mapped, so later
    changes of the file do not matter. Raises InputError, also for a file of more than `bytes_max`
    bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as cause:
        raise _unreadable(str(path), cause) from None
    except ValueError:  # the name contains a NUL
        raise InputError(str(path), "is not a file name") from None
    try:
        place = None if is_copied else path
        return _content(str(path), place, descriptor, bytes_max, on_read)
    finally:
        os.close(descriptor)


def content_of_stream(
    source: str,
    stream: BinaryIO,
    bytes_max: int = BYTES_MAX,
    on_read: OnRead = read_silently,
    *,
    is_copied: bool = False,
) -> Bytes:
    """Return the rest of `stream`, such as standard input.

    `source` is the name of the stream in error messages. `on_read` gets the progress of reading.
    `is_copied` is explained at `content_of`.
    Raises InputError, also for more than `bytes_max` bytes.
    """
    try:
        descriptor = stream.fileno()
        is_whole = not stat.S_ISREG(os.fstat(descriptor).st_mode) or stream.tell() == 0
    except (OSError, ValueError):  # `stream` is not a file, but an object in memory
        is_whole = False
    if is_whole:
        place = None if is_copied else descriptor
        return _content(source, place, descriptor, bytes_max, on_read)
    data = stream.read(bytes_max + 1)
    _require_size(source, len(data), bytes_max)
    return data


def _content(
    source: str, place: Path | int | None, descriptor: int, bytes_max: int, on_read: OnRead
) -> Bytes:
    """Return the content of `descriptor`; a file is mapped if its `place` is given (`map_file`)."""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            _require_size(source, status.st_size, bytes_max)
            if place is not None:
                # An empty file cannot be mapped, and neither can files of some file systems.
                with suppress(OSError, ValueError):
                    return map_file(source, place, descriptor)
        return _read(source, descriptor, status.st_mode, bytes_max, on_read)
    except OSError as cause:
        raise _unreadable(source, cause) from None


def _read(source: str, descriptor: int, mode: int, bytes_max: int, on_read: OnRead) -> bytes:
    """Return the content of `descriptor` up to its end.

    If `descriptor` is a pipe, the function waits while a program may still write to it. Raises
    InputError, also for more than `bytes_max` bytes.
    """
    chunks: list[bytes] = []
    size = 0
    is_endless = stat.S_ISCHR(mode) and not os.isatty(descriptor)
    while chunk := _chunk(source, descriptor, mode, is_first=not chunks):
        if is_endless:
            raise InputError(source, "is a device, not a file")
        chunks.append(chunk)
        size += len(chunk)
        _require_size(source, size, bytes_max)
        on_read("bytes", size, 0)
    return b"".join(chunks)


def _chunk(source: str, descriptor: int, mode: int, *, is_first: bool) -> bytes:
    """Return the next bytes of `descriptor`; b"" at the end.

    Raises InputError if `descriptor` is a pipe to which no program writes.
    """
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:  # a program has opened the pipe, but has not written yet
            select.select([descriptor], [], [])
            continue
        if chunk or not is_first or not stat.S_ISFIFO(mode) or os.get_blocking(descriptor):
            return chunk
        if not _has_writer(descriptor):
            raise InputError(source, "is a pipe that no program writes to")
        is_first = False


def _has_writer(descriptor: int) -> bool:
    """Return whether a program writes to the pipe, or closes it, within five seconds."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(_WRITER_AWAITED_MS))


def _require_size(source: str, size: int, bytes_max: int) -> None:
    if size > bytes_max:
        problem = f"has more than {bytes_max:,} bytes; {HOW_TO_RAISE}"
        raise InputError(source, problem)


def _unreadable(source: str, cause: OSError) -> InputError:
    return InputError(source, f"cannot be read: {cause.strerror or type(cause).__name__}")
