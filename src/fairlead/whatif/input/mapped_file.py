"""MappedFile: the content of a file that is mapped into memory, not copied.

If another program writes to the file, the mapped content changes, too. An answer from such content
would be wrong, so `unchanged_files` raises an error. A command calls `require_unchanged_files`
before it prints an answer or renames a finished temporary file to its final name, so that no wrong
answer remains. It does no harm if another file is renamed to the name of the mapped file, because
the mapped content remains.

If the file gets shorter, the system sends SIGBUS to a process that reads a page after the new end.
Python cannot raise an exception at that point, so the process ends with one line on stderr.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final
from weakref import finalize

from msgspec import Struct

from fairlead.whatif.input.error import InputError

PROBLEM: Final = "was changed while it was used, so an answer may be wrong; run the command again"
_FAILED: Final = "cannot be read: Input/output error"
_BAD_INPUT: Final = 2  # the exit code of an InputError
_STDERR: Final = 2

_Stamp = tuple[int, int, int, int]  # (device, inode, size, time of the last change of the content)


class MappedFile(Struct, frozen=True):
    """A file that is mapped into memory; `source` names it in messages.

    `place` is the path of the file, or the descriptor of standard input.
    """

    source: str
    place: Path | int
    stamp: _Stamp

    @property
    def is_changed(self) -> bool:
        """Return whether the content of the file has changed since it was mapped."""
        try:
            now = _stamp(os.stat(self.place))  # noqa: PTH116 - may be a descriptor
        except OSError:  # The file was removed, which does not change its content.
            return False
        return now[:2] == self.stamp[:2] and now != self.stamp


# The keys of both count the files in the order in which the process mapped them.
_NUMBERS: Final = count()
_IN_USE: Final[dict[int, MappedFile]] = {}
_CHANGED: Final[dict[int, MappedFile]] = {}  # files that were changed before their last use
_BLOCKS: Final[list[int]] = []  # for each `unchanged_files` block, outermost first: its number


def map_file(source: str, place: Path | int, descriptor: int) -> mmap:
    """Return the content of the file that is open as `descriptor`.

    Raises OSError or ValueError for a file that cannot be mapped, such as an empty file.
    """
    file = MappedFile(source, place, _stamp(os.fstat(descriptor)))
    content = mmap(descriptor, 0, access=ACCESS_READ)
    number = next(_NUMBERS)
    _IN_USE[number] = file
    finalize(content, _end_use, number).atexit = False
    _end_on_bus_error()
    return content


def _end_use(number: int) -> None:
    """Record that the file `number` is not used any more; also record a change during its use."""
    file = _IN_USE.pop(number)
    if file.is_changed:
        _CHANGED[number] = file


@contextmanager
def unchanged_files() -> Iterator[None]:
    """Raise InputError if a file that the `with` block maps is changed while the file is used.

    This error replaces other errors of the block, because they may be consequences of the change.
    """
    first = next(_NUMBERS)
    _BLOCKS.append(first)
    try:
        yield
    except Exception as cause:
        _require_unchanged(first, cause)
        raise
    finally:
        _BLOCKS.pop()
    _require_unchanged(first)


def require_unchanged_files() -> None:
    """Raise InputError if a mapped file was changed while it was used.

    Only files that were mapped in the outermost `unchanged_files` block are checked. Outside every
    such block, no file is checked.
    """
    if _BLOCKS:
        _require_unchanged(_BLOCKS[0])


def _require_unchanged(first: int, cause: Exception | None = None) -> None:
    changed = _CHANGED | {number: file for number, file in _IN_USE.items() if file.is_changed}
    numbers = [number for number in changed if number > first]
    if numbers:
        raise InputError(changed[min(numbers)].source, PROBLEM) from cause


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@cache
def _end_on_bus_error() -> Any:
    """Let SIGBUS end the process with one line on stderr; return the handler.

    The handler must not be freed. So the decorator `cache` holds the handler until the process
    ends.

    A handler of `signal.signal` would never run: Python calls it after the instruction that reads
    the missing page, and this instruction never ends. If the program has already set another
    handler for SIGBUS, such as faulthandler's, the other handler stays.
    """
    owner = os.getpid()
    of_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)
    try:
        set_handler = ctypes.CDLL(None).signal
    except (AttributeError, OSError):
        return None
    set_handler.restype = ctypes.c_void_p
    set_handler.argtypes = (ctypes.c_int, ctypes.c_void_p)

    def end(number: int) -> None:
        files = sorted(_IN_USE.values(), key=lambda one: (not one.is_changed, one.source))
        if not files:  # The signal has another cause, and comes again.
            set_handler(number, None)
            return
        problem = PROBLEM if files[0].is_changed else _FAILED
        if os.getpid() == owner:  # A forked worker leaves the line to its parent.
            os.write(_STDERR, f"fairlead: {InputError(files[0].source, problem)}\n".encode())
        os._exit(_BAD_INPUT)

    handler = of_handler(end)
    before = set_handler(signal.SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
    if before is not None:
        set_handler(signal.SIGBUS, before)
    return handler
