"""Transport: the connection of a replay to a server, over HTTP or in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.api.exchange import ReplayRequest

Headers = Sequence[tuple[str, str]]


class HttpAnswer(Struct, frozen=True):
    """A response. Header names are in lower case, and `body` is the unchanged body."""

    status: int
    headers: Headers
    body: bytes

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in order."""
        return [value for key, value in self.headers if key == name]


class WatchEnd(Struct, frozen=True):
    """The response to a watch request, and the events of the watch in order.

    `ended` is True if the server ended the watch.
    """

    answer: HttpAnswer
    events: Sequence[Json] = ()
    ended: bool = False


class Watching(Protocol):
    """An open watch."""

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """Return all events of the watch, and end it.

        If `until_end` is set, wait until the server ends the watch. Otherwise wait until `events`
        events have arrived. The wait for each event has a time limit.
        """
        ...


class Transport(Protocol):
    """A server to which a replay sends requests."""

    @property
    def may_run_controllers(self) -> bool:
        """Whether controllers may change the server's objects without a request."""
        ...

    def holds(self, name: str) -> bool:
        """Return whether an object called `name` may exist; True if that is unknown."""
        ...

    def begin(self) -> None:
        """Start another case. The times that are passed to `reach` are relative to this call."""
        ...

    def ask(self, request: ReplayRequest) -> HttpAnswer:
        """Send a request and return its response."""
        ...

    def watch(self, request: ReplayRequest) -> Watching:
        """Send the watch `request` and return the open watch."""
        ...

    def reach(self, at_ms: int) -> None:
        """Advance the server's clock, if it can be set, to `at_ms` after the start of the case."""
        ...
