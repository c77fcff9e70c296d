"""A cluster in the background: `fairlead up --detach` starts it, `fairlead down` ends it.

Each user can have one such cluster. A state file contains the id of the cluster's process, and the
first line that `fairlead up --detach` prints. The process holds a lock on the state file while it
runs. If no process holds the lock, the cluster in the state file has ended.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from fairlead.cli import exit_code
from fairlead.whatif.input.error import InputError, one_line

if TYPE_CHECKING:  # `fairlead down` must not import the server
    from fairlead.cli.commands.up.options import UpOptions

STOP_SECONDS_MAX: Final = 30.0
_LOOK_SECONDS: Final = 0.05
_LOG_BYTES_MAX: Final = 1 << 16
DETACH: Final = "--detach"


class DetachedCluster(Struct, frozen=True):
    """The content of the state file: the process id and the first line that `--detach` prints."""

    pid: int
    line: str

    @property
    def export(self) -> str:
        """The shell command that sets KUBECONFIG to the file of the cluster."""
        return self.line.partition("  # ")[0]


def start_detached(options: UpOptions) -> int:
    """Start `fairlead up` in the background; return the exit code.

    Waits until the cluster is ready or has failed. The new process gets the arguments of this
    process, except --detach. Raises InputError if an option is invalid, or if `options` contain a
    command to run with the cluster. Also raises InputError if this user already has a cluster in
    the background.
    """
    options.check()
    if options.command:
        raise InputError(DETACH, "cannot be combined with a command")
    with _opened(".json") as state, _opened(".log") as log:
        if not _is_locked_by_us(state):
            raise InputError(DETACH, f"a cluster is already running ({_described(_read(state))})")
        # `fairlead down` has removed the file since it was opened here.
        if not os.fstat(state).st_nlink:
            raise InputError(DETACH, "the last cluster is just ending; try again")
        os.ftruncate(log, 0)
        arguments = [each for each in sys.argv[1:] if each.partition("=")[0] != DETACH]
        process = subprocess.Popen(  # noqa: S603 - our own command, with its arguments
            [sys.executable, "-m", "fairlead.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(state,),  # The new process inherits the lock, and holds it while it runs.
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip().replace("Ctrl-C", "fairlead down")
        if not line:
            code = process.wait()
            sys.stderr.write(os.pread(log, _LOG_BYTES_MAX, 0).decode(errors="replace"))
            _remove_files()
            return code
        link = process.stdout.readline().decode() if options.dashboard else ""
        os.ftruncate(state, 0)
        os.pwrite(state, msgspec.json.encode(DetachedCluster(process.pid, line)), 0)
    print(f"{line}\n{link}", end="")
    return exit_code.SUCCESS


def running_cluster() -> DetachedCluster | None:
    """Return the cluster that runs in the background and is ready; None if there is none."""
    if not _path(".json").exists():
        return None
    with suppress(InputError), _opened(".json") as state:
        if not _is_locked_by_us(state):
            return _read(state)
    return None


def down() -> int:
    """End the cluster that `fairlead up --detach` started, and wait until it has ended.

    On one machine, each user can run only one cluster with --detach at a time.
    """
    with _opened(".json") as state:
        if _is_locked_by_us(state):
            _remove_files()
            raise InputError("down", "no cluster runs in the background")
        cluster = _read(state)
        if cluster is None:
            raise InputError("down", "a cluster is just starting; try again")
        os.kill(cluster.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS_MAX  # noqa: TID251 - of another process
        while not _is_locked_by_us(state):
            if time.monotonic() > deadline:  # noqa: TID251
                raise InputError("down", f"the cluster does not end ({_described(cluster)})")
            time.sleep(_LOOK_SECONDS)  # noqa: TID251
        _remove_files()
    print(f"ended: process {cluster.pid}", file=sys.stderr)
    return exit_code.SUCCESS


def _path(suffix: str) -> Path:
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(folder) / f"fairlead-up-{os.getuid()}{suffix}"


def _remove_files() -> None:
    """Remove the state file, and the log file if it is empty; call this with the lock held."""
    _path(".json").unlink(missing_ok=True)
    log = _path(".log")
    with suppress(FileNotFoundError):
        found = log.lstat()
        if found.st_uid == os.getuid() and not found.st_size:
            log.unlink()


@contextmanager
def _opened(suffix: str) -> Iterator[int]:
    """Yield the file descriptor of this user's state file (`.json`) or log file (`.log`).

    Raises InputError if it cannot be opened, or is not a regular file of this user.
    """
    path = _path(suffix)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as cause:
        raise InputError(str(path), cause.strerror or str(cause)) from None
    try:
        found = os.fstat(file)
        if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
            raise InputError(str(path), "is not a regular file of this user")
        yield file
    finally:
        os.close(file)


def _is_locked_by_us(state: int) -> bool:
    """Try to lock the state file; return False if a running cluster holds the lock."""
    try:
        fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(state: int) -> DetachedCluster | None:
    """Return the content of the state file; None if the cluster is not ready yet."""
    try:
        return msgspec.json.decode(os.pread(state, 1 << 16, 0), type=DetachedCluster)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _described(cluster: DetachedCluster | None) -> str:
    if cluster is None:
        return "it is starting"
    return one_line(f"process {cluster.pid}; {cluster.export}")
