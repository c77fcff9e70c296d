"""Transport: how a replay reaches a server, over HTTP or in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.api.json import Json
from fairlead.conformance.api.exchange import ReplayRequest

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response; names of `headers` are lower case, `body` is as sent."""

    status: int
    headers: Headers
    body: bytes

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in order."""
        return [value for key, value in self.headers if key == name]


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """The events of a watch in order, and whether the server ended it."""

    answer: HttpAnswer
    events: Sequence[Json] = ()
    ended: bool = False


class Watching(Protocol):
    """A watch request whose events are being received."""

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """Return all events, after `events` events or the end of the watch."""
        ...


class Transport(Protocol):
    """A server; `acts_by_itself` says whether controllers change its objects."""

    @property
    def acts_by_itself(self) -> bool:
        """Whether the server's controllers change objects without a request."""
        ...

    def holds(self, name: str) -> bool:
        """Return whether an object has this name; True if unknown."""
        ...

    def begin(self) -> None:
        """Start another case, some time after the previous one."""
        ...

    def ask(self, request: ReplayRequest) -> HttpAnswer:
        """Send a request and return its response."""
        ...

    def watch(self, request: ReplayRequest) -> Watching:
        """Send the watch `request` and return the open watch."""
        ...

    def reach(self, at_ms: int) -> None:
        """Advance to this time of the case."""
        ...
