"""A server behind a URL, asked as the recorder asked: HTTP/1.1, no headers of our own."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from fairlead.conformance.api.replay.exchange import Asking
from fairlead.conformance.api.replay.transport import Answer, WatchEnd

_TIMEOUT_S: Final = 30.0
_QUIET_S: Final = 0.3


class NoAnswerError(ValueError):
    """The server cannot be reached, or broke off."""


@dataclass(slots=True)
class OverHttp:
    """`tokens` by user; a user without one asks with a token that no server knows.

    `patience_s` bounds the wait for each event of a watch. `on_reach` is told how late it is in a
    case (ms), where the server's time can be steered.
    """

    url: str
    tokens: Mapping[str, str]
    ca_file: str | None = None
    patience_s: float = _TIMEOUT_S
    on_reach: Callable[[int], object] | None = None
    _kept: HTTPConnection | None = field(default=None, init=False)

    @property
    def acts_by_itself(self) -> bool:
        """Nobody knows."""
        return True

    def holds(self, name: str) -> bool:
        """What is not shown may be there, or not."""
        return True

    def begin(self) -> None:
        """Another case begins; at once, for the server has its own time."""

    def ask(self, asking: Asking) -> Answer:
        """One request, one answer; over the same connection as the one before, if it lives."""
        kept = self._kept
        self._kept = None
        if kept is not None:
            try:
                return self._asked(kept, asking)
            except NoAnswerError:
                kept.close()
        return self._asked(self._connection(), asking)

    def watch(self, asking: Asking) -> HttpWatching:
        """A request whose answer goes on, over its own connection."""
        connection = self._connection()
        response = self._response(connection, asking)
        timeout_s = min(asking.timeout_s or 1.0, self.patience_s)
        return HttpWatching(connection, response, timeout_s)

    def close(self) -> None:
        """Hang up."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def reach(self, at_ms: int) -> None:
        """Else a server behind a URL has its own time; the next step follows at once."""
        if self.on_reach is not None:
            self.on_reach(at_ms)

    def _asked(self, connection: HTTPConnection, asking: Asking) -> Answer:
        response = self._response(connection, asking)
        body = response.read()
        if response.will_close:
            connection.close()
        else:
            self._kept = connection
        return Answer(response.status, _lower(response), body)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme == "http":
            return HTTPConnection(parts.netloc, timeout=_TIMEOUT_S)
        context = ssl.create_default_context(cafile=self.ca_file)
        return HTTPSConnection(parts.netloc, timeout=_TIMEOUT_S, context=context)

    def _response(self, connection: HTTPConnection, asking: Asking) -> HTTPResponse:
        try:
            self._send(connection, asking)
            return connection.getresponse()
        except (HTTPException, OSError) as cause:
            connection.close()
            raise NoAnswerError(f"{self.url}: {type(cause).__name__}: {cause}") from cause

    def _send(self, connection: HTTPConnection, asking: Asking) -> None:
        path = quote(asking.path, safe="/:%@!$&'()*+,;=~")
        if asking.query:
            path = f"{path}?{urlencode(asking.query)}"
        connection.putrequest(asking.method, path, skip_accept_encoding=True)
        for name, value in asking.headers.items():
            for one in [value] if isinstance(value, str) else value:
                connection.putheader(name, one)
        if asking.user is not None:
            token = self.tokens.get(asking.user, "no-such-token")
            connection.putheader("Authorization", f"Bearer {token}")
        if asking.body or asking.method in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(asking.body)))
        connection.endheaders(asking.body or None)


@dataclass(slots=True)
class HttpWatching:
    """A watch whose events wait in the socket until they are asked for."""

    _connection: HTTPConnection
    _response: HTTPResponse
    _timeout_s: float
    _lines: list[bytes] = field(default_factory=list)

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """All that it showed; without `until_end` a short silence after `events` ends it."""
        headers, status = _lower(self._response), self._response.status
        if status != 200:
            return WatchEnd(Answer(status, headers, self._response.read()), ended=True)
        ended = self._read(events, until_end=until_end)
        self._response.close()
        self._connection.close()
        shown = [json.loads(line) for line in self._lines]
        return WatchEnd(Answer(status, headers, b""), shown, ended)

    def _read(self, events: int, *, until_end: bool) -> bool:
        while True:
            enough = not until_end and len(self._lines) >= events
            if self._connection.sock is not None:
                self._connection.sock.settimeout(_QUIET_S if enough else self._timeout_s + 2)
            try:
                line = self._response.readline()
            except (HTTPException, OSError):
                return False
            if not line:
                return True
            if line.strip():
                self._lines.append(line)


def _lower(response: HTTPResponse) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in response.getheaders()]
