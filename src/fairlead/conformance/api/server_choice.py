"""Chooses the server on which recorded exchanges are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.conformance.api.replay.api_cases import ApiCases
from fairlead.conformance.api.replay.kubectl_session import KubectlSession
from fairlead.conformance.api.server.in_process import InProcess
from fairlead.conformance.api.server.over_http import OverHttp
from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.conformance.api.server.own_server import USERS, OwnServer, token_of
from fairlead.conformance.comparison import Mismatch

# Themes, and prefixes of the ids of cases, that were recorded with controllers.
_THEMES_WITH_CONTROLLERS: Final = ("02-tables", "07-clients")
_CASES_WITH_CONTROLLERS: Final = (
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
# The recorded delays of the server are multiplied by these factors, which are tried in this order.
# In the recordings, controllers had made more or less progress when the next request arrived.
_SLOWNESS: Final = (1, 3, 10)
# The cases of each of these themes share one server, except those recorded with controllers.
_SHARED: Final = ("01-discovery", "03-crud")


@contextmanager
def cases(server: str, tokens: Path | None, ca: Path | None, only: str) -> Iterator[ApiCases]:
    """Yield an ApiCases, which replays cases on a server.

    If `server` is a URL, the server at this URL is used, and cases with kubectl commands are
    refused. `tokens` is a file in the format of kube-apiserver's `--token-auth-file`. If `tokens`
    is None, the token of each user is the user name followed by `token`. `ca` is a file with the
    server's CA certificate; None means the CA certificates of this machine.

    If `server` is "", `tokens` and `ca` are ignored. The cases are replayed on servers that are
    started in this process, and all kubectl commands are run on one cluster.

    If `only` is the name of a case and not a pattern, all mismatches of the case are reported.
    Raises OSError if the file `tokens` cannot be read.
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


class _Commands(Struct):
    """A kubectl session that starts when the first command is run."""

    session: KubectlSession | None = None

    def run(self, line: Json) -> list[Mismatch]:
        """Run the command of `line` and return the mismatches."""
        self.session = self.session or KubectlSession()
        return self.session.judge(line)

    def close(self) -> None:
        """End the session, if it was started."""
        if self.session is not None:
            self.session.close()


class _Own(Struct, frozen=True):
    """Starts Fairlead's own servers for the cases to replay.

    The cases of some themes share one server per theme; every other case gets new servers. `start`
    starts a shared server, and `kept` contains the shared servers by theme.
    """

    start: Callable[[], InProcess] = InProcess
    kept: dict[str, InProcess] = field(default_factory=dict)

    def servers(self, case: Json) -> Iterator[InProcess]:
        """Yield the servers on which to try a case.

        The first one is the most likely to give the recorded responses.
        """
        theme = case["theme"]
        runs_controllers = theme in _THEMES_WITH_CONTROLLERS or case["id"].startswith(
            _CASES_WITH_CONTROLLERS
        )
        if theme in _SHARED and not runs_controllers:
            if theme not in self.kept:
                self.kept[theme] = self.start()
            yield self.kept[theme]
            return
        for slowness in _SLOWNESS:
            yield InProcess((OwnCluster if runs_controllers else OwnServer)(slowness=slowness))


def _tokens(path: Path | None) -> dict[str, str]:
    """Return the token of each user in the file `path`, keyed by user name.

    If `path` is None, return the tokens that Fairlead's servers accept.
    """
    if path is None:
        return {user: token_of(user) for user in USERS}
    rows = (line.split(",") for line in path.read_text().splitlines() if line.strip())
    return {row[1].strip(): row[0].strip() for row in rows if len(row) > 1}
