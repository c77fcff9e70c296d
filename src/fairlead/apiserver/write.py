"""Write: how a client wants a change to be carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fairlead.apiserver.request import User

Json = dict[str, Any]
Finish = Callable[[Json | None, Json], Json]
Warn = Callable[[str], None]


def _ignore(warning: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """`finish` has the last word on what is stored (given what was there): it tracks managers.

    With `dry_run` everything happens but storing. `user` None is the server itself; `warn` is
    told what the client should know though it gets its way.
    """

    dry_run: bool = False
    finish: Finish | None = None
    user: User | None = None
    warn: Warn = _ignore

    def finished(self, old: Json | None, new: Json) -> Json:
        """`new` as it is to be stored over `old`; `old` itself where that changes nothing."""
        if self.finish is None:
            return new
        return self.finish(old, new)


PLAIN: Final = Write()
