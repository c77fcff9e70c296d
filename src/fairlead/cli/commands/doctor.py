"""`fairlead doctor`: checks whether this machine meets the requirements of the commands."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from fairlead import __version__
from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.worlds.huge_pages import obstacle

# `fairlead up` needs a file descriptor for each client connection.
_OPEN_FILES: Final = 1024
# Peak memory of a what-if, per pod; the manifest of a pod in a real cluster has about 17 KB.
_MEMORY_BYTES_PER_POD: Final = 20 << 10
_KUBECTL_SECONDS: Final = 10
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class _Finding:
    """The result of one check.

    `needed_for` names the commands or features that do not work if the check fails. If `needed_for`
    is "", a failed check makes `fairlead doctor` fail.
    """

    is_ok: bool
    text: str
    needed_for: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether this result makes `fairlead doctor` exit with status 1."""
        return not self.is_ok and not self.needed_for

    def __str__(self) -> str:
        """Return the result as the line that is printed."""
        mark = "ok" if self.is_ok else "missing" if self.is_failure else "note"
        purpose = f" (needed for {self.needed_for})" if self.needed_for and not self.is_ok else ""
        return f"{mark:<8} {self.text}{purpose}"


def doctor(*, connection: ConnectionOptions = NO_CONNECTION) -> int:
    """Check this machine: libraries, memory, kubectl, and the cluster of a kubeconfig context.

    The command prints a line for each check. 'ok' means that the check passes. 'missing' means that
    the check fails, and that the exit status is 1. 'note' means that the check fails, but that the
    failure affects only the commands or features that the line names.

    The command changes nothing. It contacts a cluster only with --context, --kubeconfig or
    --in-cluster.

    Try:

        fairlead doctor
        fairlead doctor --context prod
    """
    print(f"fairlead {__version__}, Python {sys.version.split()[0]}")
    findings = []
    for finding in _findings(connection):
        print(finding, flush=True)
        findings.append(finding)
    return exit_code.DIFFERENCE if any(one.is_failure for one in findings) else exit_code.SUCCESS


def _findings(connection: ConnectionOptions) -> Iterator[_Finding]:
    yield from _libraries()
    yield _memory()
    yield _huge_pages()
    yield _terminal()
    yield _kubectl()
    yield _loopback()
    yield _open_files()
    yield _Finding(is_ok=True, text=f"SQLite {sqlite3.sqlite_version} (for `up --data-dir`)")
    if connection.is_given:
        yield _cluster(connection)


def _libraries() -> Iterator[_Finding]:
    """Yield one finding if all libraries are installed, else one for each missing library.

    If fairlead itself is not installed as a package, yield only a finding that says so.
    """
    try:
        required = metadata.requires("fairlead") or ()
    except metadata.PackageNotFoundError:
        text = "the package fairlead is not installed: pip install ."
        yield _Finding(is_ok=False, text=text, needed_for="the check of its libraries")
        return
    names = [_NAME.match(line) for line in required if "extra" not in line]
    missing = [name[0] for name in names if name and not _version(name[0])]
    if not missing:
        yield _Finding(is_ok=True, text=f"{len(names)} libraries are installed")
    for name in missing:
        yield _Finding(is_ok=False, text=f"library {name}: pip install {name}")


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def _memory() -> _Finding:
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    pods = size // 2 // _MEMORY_BYTES_PER_POD // 1000 * 1000
    words = f"{size / 2**30:.1f} GiB of memory, enough for about {pods:,} pods"
    return _Finding(is_ok=True, text=words)


def _huge_pages() -> _Finding:
    reason = obstacle()
    return _Finding(
        is_ok=not reason,
        text=f"commands use no huge pages: {reason}" if reason else "commands use huge pages",
        needed_for="fast answers about large clusters",
    )


def _terminal() -> _Finding:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return _Finding(
        is_ok=encoding == "utf8",
        text=f"text output is encoded as {sys.stdout.encoding}",
        needed_for="curves in the terminal: set PYTHONIOENCODING=utf-8",
    )


def _kubectl() -> _Finding:
    needed_for = "dumping a cluster, and using kubectl with `fairlead up`"
    path = shutil.which("kubectl")
    if path is None:
        return _Finding(is_ok=False, text="kubectl is not on the PATH", needed_for=needed_for)
    try:
        said = subprocess.run(  # noqa: S603 - the user's own kubectl
            [path, "version", "--client"],
            capture_output=True, text=True, timeout=_KUBECTL_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as cause:
        return _Finding(is_ok=False, text=f"kubectl does not run: {cause}", needed_for=needed_for)
    version = re.search(r"v\d+\.\d+[.\w+-]*", said.stdout)
    return _Finding(
        is_ok=version is not None,
        text=f"kubectl {version[0]}" if version else "kubectl prints no version",
        needed_for=needed_for,
    )


def _loopback() -> _Finding:
    needed_for = "`fairlead up`"
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return _Finding(is_ok=True, text="servers can listen on 127.0.0.1")
    except OSError as cause:
        text = f"servers cannot listen on 127.0.0.1: {cause.strerror}"
        return _Finding(is_ok=False, text=text, needed_for=needed_for)


def _open_files() -> _Finding:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = allowed == resource.RLIM_INFINITY
    return _Finding(
        is_ok=is_unlimited or allowed >= _OPEN_FILES,
        text=f"{'unlimited' if is_unlimited else f'{allowed:,}'} open files are allowed",
        needed_for=f"clients of `fairlead up`: ulimit -n {_OPEN_FILES}",
    )


def _cluster(connection: ConnectionOptions) -> _Finding:
    """Return a finding about the version of the cluster. Raises InputError for a bad kubeconfig."""
    import asyncio

    import msgspec

    from fairlead.cli.options.connection import connection_of
    from fairlead.client.error import RequestError
    from fairlead.client.rest_client import RestClient

    config = connection_of(connection)

    async def version() -> bytes:
        async with RestClient(config) as client:
            return await client.get("/version")

    try:
        found = msgspec.json.decode(asyncio.run(version()), type=dict[str, object])
    except RequestError as cause:
        return _Finding(is_ok=False, text=f"{config.name}: {cause}")
    except msgspec.DecodeError:
        problem = f"{config.name}: the response to /version is not that of a Kubernetes API server"
        return _Finding(is_ok=False, text=problem)
    return _Finding(is_ok=True, text=f"{config.name} runs {found.get('gitVersion')}")
