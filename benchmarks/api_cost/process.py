"""Servers in separate processes, with their CPU time and memory (from Linux's /proc)."""

from __future__ import annotations

import base64
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import yaml

from api_cost.clients import Address

ALONE: Final = (sys.executable, str(Path(__file__).with_name("server.py")))
PLAIN: Final = (*ALONE, "--plain")
UP: Final = (sys.executable, "-m", "fairlead.cli.__main__", "up")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server, which was ready `ready_s` seconds after its start."""

    pid: int
    address: Address
    ready_s: float

    def cpu_s(self) -> float:
        """Return the CPU time of all threads of the server in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def resident_mib(self) -> float:
        """Return the resident memory of the server in MiB."""
        return resident_mib(self.pid)


def resident_mib(pid: int | None = None) -> float:
    """Return the resident memory of the process `pid` in MiB; None means this process."""
    pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
    return pages * _PAGE_BYTES / 2**20


@contextmanager
def serving(
    command: tuple[str, ...], directory: Path, *, is_durable: bool = True
) -> Iterator[Server]:
    """Run the server `command` within the `with` block, with its kubeconfig in `directory`.

    With `is_durable`, the server also stores its objects in `directory`; otherwise it keeps them
    only in memory. The server must print a line when it is ready, and end on SIGINT.
    """
    stored_in = ("--data-dir", str(directory)) if is_durable else ()
    config = directory / "kubeconfig"
    started = perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own
        [*command, *stored_in, "--kubeconfig", str(config)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise ConnectionError("the server did not begin")
        ready_s = perf_counter() - started
        yield Server(pid=process.pid, address=_address(config), ready_s=ready_s)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stdout.close()


def _address(config: Path) -> Address:
    """Return the address in the kubeconfig `config`."""
    read = yaml.safe_load(config.read_text())
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    is_safe = cluster["server"].startswith("https:")
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Address(
        port=int(cluster["server"].rpartition(":")[2]),
        token=user["token"],
        tls=ssl.create_default_context(cadata=authority) if is_safe else None,
    )
