"""The audit log: one line for each request, in a file that only the user can read.

If a line cannot be written, the line is dropped, and the request still succeeds. A line is also
dropped if the file is a pipe and its reader falls behind. Of several dropped lines in a row, only
the first is reported on standard error.

upstream: apiserver/plugin/pkg/audit/log/backend.go, which logs and counts the error
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from fairlead.apiserver.http.app import Audit
from fairlead.whatif.input.error import InputError


@contextmanager
def opened_audit(path: Path | None) -> Iterator[Audit | None]:
    """Yield a function that appends a line to the audit log; None without a path.

    Raises InputError.
    """
    if path is None:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    except OSError as cause:
        is_unread = cause.errno == errno.ENXIO and path.is_fifo()
        problem = "is a pipe without a reader" if is_unread else cause.strerror or str(cause)
        raise InputError("--audit", problem, object_name=str(path)) from None
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        yield _AuditLog(file, path).write


class _AuditLog:
    """Appends lines to `file`; error messages contain its `path`."""

    def __init__(self, file: FileIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._is_failing = False
        self._rest = b""  # The unwritten rest of a partially written line.

    def write(self, line: bytes) -> None:
        """Write `line`, which ends with its newline."""
        try:
            self._rest = self._written(self._rest)
            rest = line if self._rest else self._written(line)
        except OSError as cause:
            self._lose(cause.strerror or str(cause))
            return
        if rest == line:
            self._lose("is read too slowly")
            return
        self._rest = self._rest or rest
        self._is_failing = False

    def _written(self, text: bytes) -> bytes:
        """Write as much of `text` as possible; return the unwritten rest. Raises OSError."""
        return text[self._file.write(text) or 0 :] if text else text

    def _lose(self, why: str) -> None:
        if not self._is_failing:
            problem = f"{self._path}: {why}: lines are missing"
            print(f"fairlead: --audit: {problem}", file=sys.stderr, flush=True)
        self._is_failing = True
