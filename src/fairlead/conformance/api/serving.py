"""Which server the recorded exchanges are replayed on."""

from __future__ import annotations

from pathlib import Path

from fairlead.conformance.api.cases import ApiCases
from fairlead.conformance.api.in_process import InProcess
from fairlead.conformance.api.over_http import OverHttp


def cases(server: str, tokens: Path | None, ca: Path | None, only: str) -> ApiCases:
    """Exchanges with the server at a URL, or with a fresh one of our own for each case.

    A pattern of one case tells all of its differences.

    Raises OSError when the file of tokens or of the authority cannot be read.
    """
    every = not set(only) & set("*?[")
    if not server:
        return ApiCases(InProcess, every=every)
    transport = OverHttp(server, _tokens(tokens), str(ca) if ca else None)
    return ApiCases(lambda: transport, every=every)


def _tokens(path: Path | None) -> dict[str, str]:
    """Token by user; without a file each user's token is `USER-token`."""
    if path is None:
        users = ("admin", "alice", "bob", "carol", "sched", "kcm", "node1")
        return {user: f"{user}-token" for user in users}
    rows = (line.split(",") for line in path.read_text().splitlines() if line.strip())
    return {row[1].strip(): row[0].strip() for row in rows if len(row) > 1}
