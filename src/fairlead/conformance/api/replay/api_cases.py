"""The kind of case files that record exchanges with an API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.api.comparison.response import NOT_SERVED
from fairlead.conformance.api.replay.case_replay import differences
from fairlead.conformance.api.replay.transport import Transport
from fairlead.conformance.comparison import Mismatch, Remark

_NAMESPACES: Final = "/api/v1/namespaces"

Finding = Mismatch | Remark | None


@dataclass(frozen=True, slots=True)
class ApiCases:
    """A line is a case with its exchanges; each is replayed on what `servers` gives for it.

    Where that is several servers, any of them could have been recorded: the case agrees if it does
    with one. What differs is told of the first. `every`: tell every step that differs, not the
    first one only. `run`: lines with a command are commands, to be run.
    """

    servers: Callable[[Json], Iterable[Transport]]
    every: bool = False
    run: Callable[[Json], list[Mismatch]] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """None that must be objects."""
        return ()

    def recognizes(self, line: Json) -> bool:
        """Exchanges stand under `steps`, with the theme they belong to."""
        return "theme" in line and ("argv" in line or isinstance(line.get("steps"), list))

    def name_of(self, line: Json) -> str | None:
        """The line has it."""
        return line.get("id")

    def judge(self, line: Json) -> Finding:
        """Ask the server, and compare; what it says not to serve is only remarked."""
        told = self.run(line) if self.run and "argv" in line else self._replayed(line)
        found = [difference for difference in told if difference.path != NOT_SERVED]
        if told and not found:
            return Remark(str(told[0].expected), NOT_SERVED)
        if self.every and len(found) > 1:
            rest = "".join(f"\n    {other}" for other in found[1:])
            return Mismatch(f"{found[0]}{rest}\n    all of them", len(line["steps"]), len(found))
        return found[0] if found else None

    def _replayed(self, line: Json) -> list[Mismatch]:
        """What differs on the first server, unless another one answers as was recorded."""
        first: list[Mismatch] = []
        for server in self.servers(line):
            for _ in range(1 + _is_second_attempt(line)):
                server.begin()
                told = list(differences(line, server))
            first = first or told
            if all(difference.path == NOT_SERVED for difference in told):
                return told
        return first


def _is_second_attempt(line: Json) -> bool:
    """Whether the recorder's namespace was there already, with what the case had left in it.

    Otherwise every case begins with making one that nobody has.
    """
    first = line["steps"][0] if line["steps"] else {}
    is_made = bool(first.get("setup")) and first["request"]["path"] == _NAMESPACES
    return is_made and first["response"]["status"] == HTTPStatus.CONFLICT
