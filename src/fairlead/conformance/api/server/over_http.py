"""OverHttp: sends recorded requests to a server at a URL.

OverHttp adds only the headers Host, Authorization and Content-Length to the recorded headers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from fairlead.api.client_tls import client_tls_context
from fairlead.conformance.api.exchange import ReplayRequest
from fairlead.conformance.api.transport import HttpAnswer, WatchEnd

_TIMEOUT_S: Final = 30.0
_QUIET_S: Final = 0.3


class NoAnswerError(ValueError):
    """The server is unreachable or closed the connection, or the CA certificate is unusable."""


@dataclass(slots=True)
class OverHttp:
    """A server at `url`.

    `tokens` contains the tokens by user name. The requests of a user without a token contain an
    invalid token. `ca_file` is the path of the server's CA certificate; None means the CA
    certificates of this machine. A watch waits for each event for at most t + 2 seconds. Here t is
    the `timeoutSeconds` of the watch request (1 if the request has no timeout), but at most
    `patience_s`. If the server's clock can be set, `on_reach` sets the clock to a time of the
    recording. The argument of `on_reach` is this time in ms after the start of the case.
    """

    url: str
    tokens: Mapping[str, str]
    ca_file: str | None = None
    patience_s: float = _TIMEOUT_S
    on_reach: Callable[[int], object] | None = None
    _kept: HTTPConnection | None = field(default=None, init=False)

    @property
    def may_run_controllers(self) -> bool:
        """True, because it is unknown whether the server runs controllers."""
        return True

    def holds(self, name: str) -> bool:
        """Return True: an object called `name` may exist, because the objects are unknown."""
        return True

    def begin(self) -> None:
        """Do nothing, because the server has its own clock."""

    def ask(self, request: ReplayRequest) -> HttpAnswer:
        """Send a request and return its response; reuse the previous connection if it is open.

        Raises NoAnswerError.
        """
        kept = self._kept
        self._kept = None
        if kept is not None:
            try:
                return self._exchange(kept, request)
            except NoAnswerError:
                kept.close()
        return self._exchange(self._connection(), request)

    def watch(self, request: ReplayRequest) -> HttpWatching:
        """Open a watch on a new connection.

        Raises NoAnswerError.
        """
        connection = self._connection()
        response = self._response(connection, request)
        timeout_s = min(request.timeout_s or 1.0, self.patience_s)
        return HttpWatching(connection, response, timeout_s)

    def close(self) -> None:
        """Close the connection to the server."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def reach(self, at_ms: int) -> None:
        """Call `on_reach`, if there is one, with the time `at_ms` of the recording."""
        if self.on_reach is not None:
            self.on_reach(at_ms)

    def _exchange(self, connection: HTTPConnection, request: ReplayRequest) -> HttpAnswer:
        response = self._response(connection, request)
        body = response.read()
        if response.will_close:
            connection.close()
        else:
            self._kept = connection
        return HttpAnswer(response.status, _lower(response), body)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme == "http":
            return HTTPConnection(parts.netloc, timeout=_TIMEOUT_S)
        try:
            context = client_tls_context(authority_file=self.ca_file)
        except OSError as cause:  # SSLError is an OSError
            raise NoAnswerError(f"{self.ca_file}: not a CA certificate: {cause}") from cause
        return HTTPSConnection(parts.netloc, timeout=_TIMEOUT_S, context=context)

    def _response(self, connection: HTTPConnection, request: ReplayRequest) -> HTTPResponse:
        try:
            self._send(connection, request)
            return connection.getresponse()
        except (HTTPException, OSError) as cause:
            connection.close()
            raise NoAnswerError(f"{self.url}: {type(cause).__name__}: {cause}") from cause

    def _send(self, connection: HTTPConnection, request: ReplayRequest) -> None:
        path = quote(request.path, safe="/:%@!$&'()*+,;=~")
        if request.query:
            path = f"{path}?{urlencode(request.query)}"
        connection.putrequest(request.method, path, skip_accept_encoding=True)
        for name, value in request.headers.items():
            for one in [value] if isinstance(value, str) else value:
                connection.putheader(name, one)
        if request.user is not None:
            token = self.tokens.get(request.user, "no-such-token")
            connection.putheader("Authorization", f"Bearer {token}")
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body or None)


class HttpWatching(Struct):
    """An open watch; its events stay in the socket until `finish` reads them."""

    _connection: HTTPConnection
    _response: HTTPResponse
    _timeout_s: float
    _lines: list[bytes] = msgspec.field(default_factory=list)

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """Return all events of the watch, and close its connection.

        If `until_end` is set, wait until the server ends the watch. Otherwise wait for `events`
        events, and then until no event has arrived for 0.3 s. In both cases, stop if no event
        arrives within the limit that OverHttp describes.
        """
        headers, status = _lower(self._response), self._response.status
        if status != 200:
            return WatchEnd(HttpAnswer(status, headers, self._response.read()), ended=True)
        ended = self._read(events, until_end=until_end)
        self._response.close()
        self._connection.close()
        shown = [json.loads(line) for line in self._lines]
        return WatchEnd(HttpAnswer(status, headers, b""), shown, ended)

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
