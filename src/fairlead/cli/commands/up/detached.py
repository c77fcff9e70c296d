"""Clusters in the background: `fairlead up --detach` starts one, `fairlead down` ends it.

Each user can have one such cluster of each name. The name selects the cluster's state file. This
file contains the id of the cluster's process, and the first line that `fairlead up --detach`
prints. The process holds a lock on the state file while it runs. If no process holds the lock, the
cluster in the state file has ended.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from fairlead.cli import exit_code
from fairlead.cli.commands.up.cluster_name import check_cluster_name
from fairlead.cli.options.parameter import named
from fairlead.cli.output.result_file import print_notice
from fairlead.whatif.input.error import InputError, one_line
from fairlead.worlds.local.kubeconfig import NAME

if TYPE_CHECKING:  # `fairlead down` must not import the server
    from fairlead.cli.commands.up.options import UpOptions

STOP_SECONDS_MAX: Final = 30.0
_LOOK_SECONDS: Final = 0.05
_LOG_BYTES_MAX: Final = 1 << 16
_STDIN: Final = 0
_DESCRIPTOR_PATH: Final = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
_STATE_BYTES_MAX: Final = 1 << 16
_END_HOLDER: Final = "end the process that has this file open"
DETACH: Final = "--detach"
DOWN_NAME_HELP: Final = "End the cluster that `fairlead up --detach --name NAME` started."


class DetachedCluster(Struct, frozen=True):
    """The content of the state file: the process id and the first line that `--detach` prints."""

    # Signals to other numbers would reach groups of processes, or are impossible.
    pid: Annotated[int, Meta(ge=1, lt=1 << 31)]
    line: str

    @property
    def export(self) -> str:
        """The shell command that sets KUBECONFIG to the file of the cluster."""
        return self.line.partition("  # ")[0]


def start_detached(options: UpOptions) -> int:
    """Start `fairlead up` in the background; return the exit code.

    Waits until the cluster is ready or has failed. The new process gets the arguments of this
    process, except --detach. Raises InputError if an option is invalid, or if `options` contain a
    command to run with the cluster. Also raises InputError if this user already has a cluster of
    this name in the background, or if the new process ends before the cluster is ready and prints
    no error.
    """
    options.check()
    if options.command:
        raise InputError(DETACH, "cannot be combined with a command")
    name = options.name
    with _opened(name, ".json") as state, _opened(name, ".log") as log:
        if not _is_locked_by_us(state):
            problem = f"a {_titled(name)} is already running ({_described(_read(state, name))})"
            raise InputError(DETACH, f"{problem}; to start another cluster, choose another --name")
        # `fairlead down` has removed the file since it was opened here.
        if not os.fstat(state).st_nlink:
            raise InputError(DETACH, "the last cluster is just ending; try again")
        os.ftruncate(state, 0)  # the process in it has ended
        os.ftruncate(log, 0)
        arguments = [each for each in sys.argv[1:] if each.partition("=")[0] != DETACH]
        read = set(_descriptors(options))
        process = subprocess.Popen(  # noqa: S603 - our own command, with its arguments
            # -P: no file of the current directory, such as calendar.py, replaces a module.
            [sys.executable, "-P", "-m", "fairlead.cli", *arguments],
            stdin=None if _STDIN in read else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # The new process inherits the lock on the state file, and holds it while it runs.
            pass_fds=(state, *read - {_STDIN}),
            start_new_session=True,
        )
        assert process.stdout is not None
        with _ended_after_failure(process), process.stdout as output:
            line = output.readline().decode().strip().replace("Ctrl-C", _down(name))
            if not line:
                code = process.wait()
                _print_log(log)
                _remove_files(name)
                return _error_code(code)
            link = output.readline().decode() if options.dashboard else ""
            os.pwrite(state, msgspec.json.encode(DetachedCluster(process.pid, line)), 0)
            _print_log(log)  # notices, such as the age of the dump
    print(f"{line}\n{link}", end="")
    return exit_code.SUCCESS


def _descriptors(options: UpOptions) -> Iterator[int]:
    """Yield the descriptors of open files that `options` name for reading: `-` or /dev/fd/N.

    A shell replaces `<(COMMAND)` by such a name.
    """
    for path in (
        options.snapshot,
        options.autoscale.node_groups,
        options.instance_types,
        options.limits_file,
        *options.stage_files,
    ):
        if path in ("-", "/dev/stdin"):
            yield _STDIN
        elif path and (found := _DESCRIPTOR_PATH.fullmatch(path)):
            # A descriptor that is not open, or not for child processes, is left out: the new
            # process then refuses the path.
            with suppress(OSError, OverflowError):
                if os.get_inheritable(int(found[1])):
                    yield int(found[1])


@contextmanager
def _ended_after_failure(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End `process` if the `with` block fails, for example because the user interrupts it."""
    try:
        yield
    except BaseException:
        process.terminate()
        raise


def _error_code(code: int) -> int:
    """Return the exit code for a process that ended with `code` before its cluster was ready.

    Raises InputError if the process has printed no error: a signal ended it, or it succeeded.
    """
    if 0 < code < exit_code.SIGNALLED:
        return code
    number = abs(code) % exit_code.SIGNALLED
    why = f" (signal {number})" if number else ""
    raise InputError(DETACH, f"the new process ended before the cluster was ready{why}")


def _print_log(log: int) -> None:
    """Print the content of the log file, the new process's stderr so far, to stderr."""
    if text := os.pread(log, _LOG_BYTES_MAX, 0).decode(errors="replace"):
        print_notice(text.removesuffix("\n"))


def running_cluster(name: str) -> DetachedCluster | None:
    """Return the cluster `name` that runs in the background and is ready; None if there is none.

    The result is also None if the state file cannot be read.
    """
    with suppress(InputError, OSError):  # such as a name that is too long for a file
        check_cluster_name(name)
        if _path(name, ".json").exists():
            with _opened(name, ".json") as state:
                return None if _is_locked_by_us(state) else _read(state, name)
    return None


def down(*, name: Annotated[str, named("NAME", DOWN_NAME_HELP)] = NAME) -> int:
    """End a cluster that `fairlead up --detach` started, and wait until it has ended.

    If you run two clusters with --detach on one machine, they need different names.
    """
    check_cluster_name(name)
    with _opened(name, ".json") as state:
        if _is_locked_by_us(state):
            _remove_files(name)
            raise InputError("down", _not_running(name))
        cluster = _read(state, name)
        if cluster is None:
            raise InputError("down", "a cluster is just starting; try again")
        try:
            os.kill(cluster.pid, signal.SIGTERM)
        except OSError as cause:
            problem = f"process {cluster.pid} cannot be ended ({cause.strerror}); {_END_HOLDER}"
            raise InputError(str(_path(name, ".json")), problem) from None
        deadline = time.monotonic() + STOP_SECONDS_MAX  # noqa: TID251 - of another process
        while not _is_locked_by_us(state):
            if time.monotonic() > deadline:  # noqa: TID251
                raise InputError("down", f"the cluster does not end ({_described(cluster)})")
            time.sleep(_LOOK_SECONDS)  # noqa: TID251
        _remove_files(name)
    print(f"ended: process {cluster.pid}", file=sys.stderr)
    return exit_code.SUCCESS


def _not_running(name: str) -> str:
    """Return the message that the cluster `name` does not run in the background.

    If other clusters run in the background, the message contains the commands that end them.
    """
    others = [each for each in _names() if running_cluster(each) is not None]
    if not others:
        return f"no {_titled(name)} runs in the background"
    commands = ", ".join(map(_down, others))
    return f"no cluster named {name} runs in the background; to end another cluster: {commands}"


def _names() -> list[str]:
    """Return the names that have a state file, sorted."""
    first = _path(NAME, "").name
    files = sorted(path.stem for path in _folder().glob(f"{first}*.json"))
    return [NAME if stem == first else stem.removeprefix(f"{first}-") for stem in files]


def _down(name: str) -> str:
    """Return the command that ends the cluster `name`."""
    return "fairlead down" if name == NAME else f"fairlead down --name {name}"


def _titled(name: str) -> str:
    return "cluster" if name == NAME else f"cluster named {name}"


def _folder() -> Path:
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())


def _path(name: str, suffix: str) -> Path:
    """Return the path of the state file (`.json`) or log file (`.log`) of the cluster `name`."""
    of_name = "" if name == NAME else f"-{name}"
    return _folder() / f"fairlead-up-{os.getuid()}{of_name}{suffix}"


def _remove_files(name: str) -> None:
    """Remove the state file, and the log file if it is empty; the caller must hold the lock."""
    _path(name, ".json").unlink(missing_ok=True)
    log = _path(name, ".log")
    with suppress(FileNotFoundError):
        found = log.lstat()
        if found.st_uid == os.getuid() and not found.st_size:
            log.unlink()


@contextmanager
def _opened(name: str, suffix: str) -> Iterator[int]:
    """Yield the file descriptor of the state file or log file (`_path`) of the cluster `name`.

    Raises InputError if the file cannot be opened, or is not a regular file of this user.
    """
    path = _path(name, suffix)
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


def _read(state: int, name: str) -> DetachedCluster | None:
    """Return the content of the state file, which the cluster `name` has locked.

    Returns None if the file is empty: the cluster is not ready yet. Raises InputError if the file
    is damaged.
    """
    content = os.pread(state, _STATE_BYTES_MAX, 0)
    if not content:
        return None
    try:
        return msgspec.json.decode(content, type=DetachedCluster)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = f"is damaged, so the process of the cluster is unknown; {_END_HOLDER}"
        raise InputError(str(_path(name, ".json")), problem) from None


def _described(cluster: DetachedCluster | None) -> str:
    if cluster is None:
        return "it is starting"
    return one_line(f"process {cluster.pid}; {cluster.export}")
