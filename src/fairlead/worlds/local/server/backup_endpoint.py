"""BackupEndpoint: a consistent copy of a running cluster's data directory, over HTTP.

GET /fairlead/backup    a tar file (see `worlds.local.backup`) with all keys and tokens
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.negotiation.request_error import no_method
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.worlds.local.backup import write_backup

PATH: Final = "/fairlead/backup"
_PART_BYTES: Final = 256 << 10


class BackupEndpoint:
    """Serves backups of a data directory.

    The stored objects are copied by the write-ahead log. All other files are read directly.
    """

    def __init__(self, directory: Path | None, log: WriteAheadLog | None) -> None:
        """`directory` is the data directory, and `log` is the write-ahead log in it.

        `directory` and `log` are None for a cluster in memory.
        """
        self._directory = directory
        self._log = log

    async def __call__(self, request: Request) -> Response:
        """Return a backup.

        Raises ApiError: 404 for a cluster in memory, 405 for a method other than GET.
        """
        if request.method != "GET":
            raise no_method()
        if self._directory is None or self._log is None:
            raise ApiError("NotFound", 404, "the cluster keeps its state in memory")
        scratch = TemporaryDirectory(dir=self._directory, prefix=".backup-")
        file = Path(scratch.name) / "backup.tar"
        await asyncio.to_thread(_write, self._directory, self._log.copy_to, file)
        return Response(200, _parts(scratch, file), "application/x-tar")


def _write(directory: Path, copy_objects: Callable[[Path], None], path: Path) -> None:
    """Write a backup of `directory` to the new file `path`. Raises OSError."""
    with path.open("xb") as file:
        write_backup(directory, copy_objects, file)


def _parts(scratch: TemporaryDirectory[str], path: Path) -> Iterator[bytes]:
    """Yield the content of the file `path` in parts; delete the file after the last part."""
    with scratch, path.open("rb") as file:
        while part := file.read(_PART_BYTES):
            yield part
