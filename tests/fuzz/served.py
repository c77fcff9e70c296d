"""A real `fairlead up` in its own process with limited memory, and its memory and CPU usage."""

from __future__ import annotations

import base64
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import yaml

ADDRESS_SPACE_MAX = 4 << 30
# Timeouts of the server that a test may shorten, by module.
WAITS = {
    "HEAD_SECONDS_MAX": "connection_timeouts",
    "READING_SECONDS_MAX": "connection_timeouts",
    "BODY_SECONDS_MAX": "app",
}
_START = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
from fairlead.apiserver.http import app, connection_timeouts
from fairlead.cli.main import main
for module, name, seconds in {waits}:
    setattr(globals()[module], name, seconds)
sys.exit(main())
"""


@dataclass(frozen=True)
class Served:
    """The address, the credentials and the process of a server."""

    process: subprocess.Popen[str]
    host: str
    port: int
    token: str
    authority: Path
    audit: Path
    tls: ssl.SSLContext
    line: HTTPSConnection

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def rss_mib(self) -> float:
        """Return the resident memory of the process."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / (1 << 20)

    @property
    def cpu_s(self) -> float:
        """Return the CPU time that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def answers(self) -> Counter[str]:
        """Return the number of requests by outcome, such as `create 201`."""
        lines = (json.loads(line) for line in self.audit.read_bytes().splitlines())
        return Counter(f"{line['verb']} {line['responseStatus']['code']}" for line in lines)

    def connect(self, timeout: float = 60) -> ssl.SSLSocket:
        """Return a raw connection."""
        plain = socket.create_connection((self.host, self.port), timeout=timeout)
        return self.tls.wrap_socket(plain, server_hostname=self.host)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return (status, value) of a response; the value is text if it is not JSON."""
        sent = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        named |= {"Authorization": f"Bearer {self.token}"}
        try:
            self.line.request(method, path, sent, named)
            answer = self.line.getresponse()
        except (ConnectionError, RemoteDisconnected):  # the server closed the idle connection
            self.line.close()
            self.line.request(method, path, sent, named)
            answer = self.line.getresponse()
        said = answer.read()
        # OpenAPI indexes are sent as plain text, but contain JSON.
        return answer.status, json.loads(said) if said.startswith(b"{") else said.decode()


@contextmanager
def served(folder: Path, waits: Mapping[str, float] | None = None) -> Iterator[Served]:
    """Yield a running server; it must still run at the end of the block."""
    config = folder / "kubeconfig"
    shorter = [(WAITS[name], name, seconds) for name, seconds in (waits or {}).items()]
    code = _START.format(waits=shorter, memory=ADDRESS_SPACE_MAX)
    audit = folder / "audit.jsonl"
    options = ["up", "--kubeconfig", str(config), "--audit", str(audit)]
    command = [sys.executable, "-c", code, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("export KUBECONFIG")
            found = _found(process, config)
            with closing(found.line):
                yield found
            assert process.poll() is None, "the server has ended"
        finally:
            process.terminate()


def _found(process: subprocess.Popen[str], config: Path) -> Served:
    read = yaml.safe_load(config.read_text())
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    authority = config.with_name("ca.crt")
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    host, _, port = cluster["server"].removeprefix("https://").partition(":")
    tls = ssl.create_default_context(cafile=str(authority))
    audit = config.with_name("audit.jsonl")
    line = HTTPSConnection(host, int(port), context=tls, timeout=60)
    return Served(process, host, int(port), user["token"], authority, audit, tls, line)
