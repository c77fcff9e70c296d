"""The audit log: one line for each request, appended to a file.

If the file does not exist, it is created so that only its owner can read it. If a line cannot be
written, it is dropped, and the request still succeeds.

upstream: apiserver/plugin/pkg/audit/log/backend.go, which logs and counts the error
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead.apiserver.endpoints.audit import AuditBackend, AuditLevel
from fairlead.cli.output.line_file import LineFile
from fairlead.whatif.input.error import InputError
from fairlead.worlds.standard_stream import standard_stream

_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK


@contextmanager
def opened_audit(path: Path | None, level: AuditLevel) -> Iterator[AuditBackend | None]:
    """Yield the backend that appends audit events of `level` to the file `path`.

    Yields None if `path` is None. Raises InputError if the file cannot be opened.
    """
    if path is None:
        yield None
        return
    try:
        descriptor = standard_stream(path)
        if descriptor is None:
            descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as cause:
        is_unread = cause.errno == errno.ENXIO and path.is_fifo()
        problem = "is a pipe without a reader" if is_unread else cause.strerror or str(cause)
        raise InputError("--audit", problem, object_name=str(path)) from None
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        yield AuditBackend(LineFile("--audit", path, file).write, level)
