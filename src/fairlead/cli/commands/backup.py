"""`fairlead backup` and `fairlead restore`: save and restore the data directory of a cluster."""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead.apiserver.storage.sqlite_log import SqliteLogError
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.cli import exit_code
from fairlead.cli.options.parameter import named
from fairlead.cli.output.atomic_file import AtomicFile, require_writable
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import RequestError
from fairlead.client.rest_client import RestClient
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.backup import BackupError, restore_backup, write_backup
from fairlead.worlds.local.data_dir import (
    ADDRESS,
    OBJECTS,
    lost_data,
    read_data_dir,
    require_regular_files,
)
from fairlead.worlds.local.server.backup_endpoint import PATH

DataDirectory = Annotated[
    Path, named("DIR", "The data directory of the cluster, as given to `fairlead up`.")
]
NewDataDirectory = Annotated[
    Path,
    named("DIR", "The data directory to create for `fairlead up`. If it exists, it must be empty."),
]


def backup(
    file: Annotated[Path, Parameter(show_default=False)], /, *, data_dir: DataDirectory
) -> int:
    """Write a consistent copy of the data directory of a cluster to a tar file.

    The cluster can be running or stopped. The command refuses a damaged directory. The file
    contains the cluster's keys and tokens, so only you can read it (file mode 0600).

    Try:

        fairlead backup before-upgrade.tar --data-dir ./cluster
        fairlead restore before-upgrade.tar --data-dir ./again

    Parameters
    ----------
    file
        Where to write the backup.
    """
    require_writable("FILE", file)
    if file.exists() and file.resolve().is_relative_to(data_dir.resolve()):
        raise InputError("FILE", f"{file} is in the directory of --data-dir; name another file")
    if not (data_dir / OBJECTS).exists():
        raise InputError("--data-dir", f"{data_dir} contains no cluster")
    try:
        require_regular_files(data_dir)
        if (data_dir / ADDRESS).exists():
            _copy_running(data_dir, file)
        else:
            _copy_stopped(data_dir, file)
    except OSError as cause:
        if cause.filename == str(file.resolve()):
            raise
        problem = f"{cause.filename or data_dir}: {cause.strerror or cause}"
        raise InputError("--data-dir", problem) from None
    except (SqliteLogError, ValueError) as cause:
        raise InputError("--data-dir", str(cause)) from None
    except RequestError as cause:
        problem = f"{cause} (remove {data_dir / ADDRESS} if the cluster was killed)"
        raise InputError("--data-dir", problem) from None
    print(f"backup: {file}", file=sys.stderr)
    return exit_code.SUCCESS


def restore(
    file: Annotated[Path, Parameter(show_default=False)], /, *, data_dir: NewDataDirectory
) -> int:
    """Restore a cluster from a backup into a new data directory.

    Try:

        fairlead restore before-upgrade.tar --data-dir ./again
        fairlead up --data-dir ./again

    Parameters
    ----------
    file
        A file that `fairlead backup` has written.
    """
    try:
        restore_backup(file, data_dir)
    except BackupError as cause:
        raise InputError("restore", str(cause)) from None
    except OSError as cause:
        name = str(cause.filename or file)
        if name == str(data_dir) and isinstance(cause, FileExistsError | NotADirectoryError):
            raise InputError("--data-dir", "is not a directory", object_name=name) from None
        raise InputError("restore", cause.strerror or str(cause), object_name=name) from None
    print(f"restored: {data_dir}", file=sys.stderr)
    return exit_code.SUCCESS


def _copy_stopped(data_dir: Path, file: Path) -> None:
    """Write a backup of the stopped cluster in `data_dir` to `file`.

    If the cluster has lost data, raises ValueError, because the backup would not show the loss.
    Raises SqliteLogError, OSError and ValueError if the files cannot be read or written.
    """
    with closing(WriteAheadLog(data_dir / OBJECTS)) as log:
        if lost := lost_data(data_dir, log):
            raise ValueError(
                f"{lost}; fairlead up --accept-loss continues without the missing data"
            )
        read_data_dir(data_dir)
        log.restore(Storage())
        with AtomicFile(file, is_private=True) as target:
            write_backup(data_dir, log.copy_to, target)


def _copy_running(data_dir: Path, file: Path) -> None:
    """Fetch a backup from the running server and write it to `file`.

    Raises RequestError, OSError, ValueError.
    """
    found = read_data_dir(data_dir)
    config = ConnectionConfig(
        name=str(data_dir),
        server=f"https://{(data_dir / ADDRESS).read_text()}",
        authority=found.authority.certificate,
        token=found.admin_token,
    )

    async def copy() -> bytes:
        async with RestClient(config, bytes_max=sys.maxsize) as client:
            return await client.get(PATH)

    content = asyncio.run(copy())
    with AtomicFile(file, is_private=True) as target:
        target.write(content)
