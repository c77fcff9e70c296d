"""Output files that are the process's own standard output or standard error.

A shell's `> FILE` makes FILE the standard output, and /dev/stdout is then another name of FILE. If
a program replaced FILE, what it prints would be lost. If the program opened FILE again, the two
open files would have different positions and overwrite each other's text.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Final

_DESCRIPTORS: Final = (1, 2)  # of standard output and standard error


def is_standard_stream(path: Path) -> bool:
    """Return whether the regular file at `path` is standard output or standard error."""
    return _descriptor(path) is not None


def standard_stream(path: Path) -> int | None:
    """Return a new descriptor of the standard output or standard error at `path`.

    The descriptor has the position of the stream, so what the caller writes follows what was
    printed. Return None if `path` is another file. Return None also for pipes and devices, which
    have no position and can be opened again. Raises OSError.
    """
    descriptor = _descriptor(path)
    if descriptor is None:
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # so that what was printed before comes first
    return os.dup(descriptor)


def _descriptor(path: Path) -> int | None:
    """Return which of `_DESCRIPTORS` is the regular file at `path`; None if neither is."""
    try:
        found = path.stat()
    except OSError:  # The path does not exist.
        return None
    if not S_ISREG(found.st_mode):
        return None
    for descriptor in _DESCRIPTORS:
        with suppress(OSError):  # The stream is closed.
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None
