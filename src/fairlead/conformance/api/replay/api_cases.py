"""ApiCases: a kind of case files, whose lines record exchanges with an API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.api.comparison.response import NOT_SERVED
from fairlead.conformance.api.replay.case_replay import mismatches
from fairlead.conformance.api.transport import Transport
from fairlead.conformance.comparison import Mismatch, Remark

_NAMESPACES: Final = "/api/v1/namespaces"

Finding = Mismatch | Remark | None


class ApiCases(Struct, frozen=True):
    """Lines that record exchanges with an API server; each line is a case.

    A case is replayed on the servers that `servers` returns, until it agrees on one of them. If the
    case agrees on no server, its first mismatch on the first server is reported. If `every` is set,
    all its mismatches on the first server are reported.

    `run` runs the kubectl command of a line and returns the mismatches. If `run` is None, lines
    with a kubectl command are refused. Such lines cannot be replayed from their requests, because
    the requests of the setup commands were not recorded.
    """

    servers: Callable[[Json], Iterable[Transport]]
    every: bool = False
    run: Callable[[Json], list[Mismatch]] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The required members of a line: none, because `recognizes` examines each line."""
        return ()

    def recognizes(self, line: Json) -> bool:
        """Return True if `line` has the field `theme`, and either `argv` or a list `steps`."""
        return "theme" in line and ("argv" in line or isinstance(line.get("steps"), list))

    def name_of(self, line: Json) -> str | None:
        """Return the id of the line; None if it has no id."""
        return line.get("id")

    def judge(self, line: Json) -> Finding:
        """Replay the case; return its mismatch, or None if the case agrees.

        If the server does not support some requests and nothing else mismatches, return a Remark.
        Raises ValueError if the line contains a kubectl command and `self.run` is None.
        """
        differences = self._commanded(line) if "argv" in line else self._replayed(line)
        found = [difference for difference in differences if difference.path != NOT_SERVED]
        if differences and not found:
            return Remark(str(differences[0].expected), NOT_SERVED)
        if self.every and len(found) > 1:
            rest = "".join(f"\n    {other}" for other in found[1:])
            return Mismatch(f"{found[0]}{rest}\n    number of mismatches", 0, len(found))
        return found[0] if found else None

    def _commanded(self, line: Json) -> list[Mismatch]:
        if self.run is None:
            raise ValueError("kubectl commands cannot be replayed on the server of --server")
        return self.run(line)

    def _replayed(self, line: Json) -> list[Mismatch]:
        """Replay the case on one server after another, until the case agrees with a server.

        Return the mismatches on the server with which the case agrees. If the case agrees with no
        server, return the mismatches on the first server. A case agrees with a server if all its
        mismatches on this server have the path NOT_SERVED.
        """
        first: list[Mismatch] = []
        for server in self.servers(line):
            for _ in range(1 + _is_second_attempt(line)):
                server.begin()
                differences = list(mismatches(line, server))
            first = first or differences
            if all(difference.path == NOT_SERVED for difference in differences):
                return differences
        return first


def _is_second_attempt(line: Json) -> bool:
    """Return whether the case had been run once before the run that was recorded.

    If so, the namespace existed already, and the recorded request to create it failed.
    """
    first = line["steps"][0] if line["steps"] else {}
    is_made = bool(first.get("setup")) and first["request"]["path"] == _NAMESPACES
    return is_made and first["response"]["status"] == HTTPStatus.CONFLICT
