"""Which server the recorded exchanges are replayed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.api.replay.api_cases import ApiCases
from fairlead.conformance.api.replay.kubectl_session import KubectlSession
from fairlead.conformance.api.server.in_process import InProcess
from fairlead.conformance.api.server.over_http import OverHttp
from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.conformance.api.server.own_server import OwnServer
from fairlead.conformance.comparison import Mismatch

# What was recorded with controllers running.
_LIVING: Final = ("02-tables", "07-clients")
_LIVING_CASES: Final = (
    "auth.",
    "crud.gone410",
    "deploy.",
    "endpoints.",
    "gc.",
    "job.",
    "node.",
    "ns.",
    "pdb.",
    "quota.",
    "sched.",
)
# How many times as late a recorded server may have been with what it does by itself: how far its
# controllers have come when the next request arrives is chance.
_SLOWNESS: Final = (1, 3, 10)
_SHARED: Final = ("01-discovery", "03-crud")


@contextmanager
def cases(server: str, tokens: Path | None, ca: Path | None, only: str) -> Iterator[ApiCases]:
    """Exchanges with the server at a URL, or with a fresh one of our own for each case.

    A pattern of one case tells all of its differences. Commands are run on a cluster of our own
    that all of them share.

    Raises OSError when the file of tokens or of the authority cannot be read.
    """
    every = not set(only) & set("*?[")
    if server:
        transport = OverHttp(server, _tokens(tokens), str(ca) if ca else None)
        yield ApiCases(lambda _: (transport,), every=every)
        transport.close()
        return
    commands = _Commands()
    try:
        yield ApiCases(_Own().servers, every=every, run=commands.run)
    finally:
        commands.close()


@dataclass(slots=True)
class _Commands:
    """A session with kubectl, from the first command on."""

    session: KubectlSession | None = None

    def run(self, line: Json) -> list[Mismatch]:
        """What differs when the command of `line` is run."""
        self.session = self.session or KubectlSession()
        return self.session.judge(line)

    def close(self) -> None:
        """End the session, if one has begun."""
        if self.session is not None:
            self.session.close()


@dataclass(frozen=True, slots=True)
class _Own:
    """Servers of our own: a fresh one for each case, but where cases find what others left."""

    kept: dict[str, InProcess] = field(default_factory=dict)

    def servers(self, case: Json) -> Iterator[InProcess]:
        """The servers that may have been recorded in a case, the likeliest first."""
        theme = case["theme"]
        lives = theme in _LIVING or case["id"].startswith(_LIVING_CASES)
        if theme in _SHARED and not lives:
            yield self.kept.setdefault(theme, InProcess())
            return
        for slowness in _SLOWNESS:
            yield InProcess((OwnCluster if lives else OwnServer)(slowness=slowness))


def _tokens(path: Path | None) -> dict[str, str]:
    """Token by user; without a file each user's token is `USERtoken`."""
    if path is None:
        users = ("admin", "alice", "bob", "carol", "sched", "kcm", "node1")
        return {user: f"{user}token" for user in users}
    rows = (line.split(",") for line in path.read_text().splitlines() if line.strip())
    return {row[1].strip(): row[0].strip() for row in rows if len(row) > 1}
