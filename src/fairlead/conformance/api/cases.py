"""The kind of case files that record exchanges with an API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.conformance.api.answer import NOT_SERVED
from fairlead.conformance.api.replay import differences
from fairlead.conformance.api.transport import Transport
from fairlead.conformance.comparison import Difference, Remark

Json = dict[str, Any]
Finding = Difference | Remark | None


@dataclass(frozen=True, slots=True)
class ApiCases:
    """A line is a case with its exchanges; each is replayed on what `connect` gives for it.

    `every`: tell every step that differs, not the first one only. `run`: lines with a command
    are commands, to be run.
    """

    connect: Callable[[Json], Transport]
    every: bool = False
    run: Callable[[Json], list[Difference]] | None = None

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
        if self.run is not None and "argv" in line:
            told = self.run(line)
        else:
            told = list(differences(line, self.connect(line)))
        found = [difference for difference in told if difference.path != NOT_SERVED]
        if told and not found:
            return Remark(str(told[0].expected), NOT_SERVED)
        if self.every and len(found) > 1:
            rest = "".join(f"\n    {other}" for other in found[1:])
            return Difference(f"{found[0]}{rest}\n    all of them", len(line["steps"]), len(found))
        return found[0] if found else None
