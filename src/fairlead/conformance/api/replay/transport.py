"""How a replay reaches a server: over HTTP, or in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.api.json import Json
from fairlead.conformance.api.replay.exchange import Asking

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; names of `headers` are in lower case, `body` is as it was sent."""

    status: int
    headers: Headers
    body: bytes

    def values(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for key, value in self.headers if key == name]


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """What a watch showed: events in order, and whether the server ended it."""

    answer: Answer
    events: Sequence[Json] = ()
    ended: bool = False


class Watching(Protocol):
    """A watch that has begun."""

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """All that it showed, after waiting for so many events, or until the server ends it."""
        ...


class Transport(Protocol):
    """A server to ask; `acts_by_itself`: controllers change what is there, when they come to it."""

    @property
    def acts_by_itself(self) -> bool:
        """See above."""
        ...

    def holds(self, name: str) -> bool:
        """Whether any object there has this name; yes where that cannot be told."""
        ...

    def begin(self) -> None:
        """Another case begins, a while after the one before."""
        ...

    def ask(self, asking: Asking) -> Answer:
        """One request, one answer."""
        ...

    def watch(self, asking: Asking) -> Watching:
        """A request whose answer goes on."""
        ...

    def reach(self, at_ms: int) -> None:
        """It is so late in the case now."""
        ...
