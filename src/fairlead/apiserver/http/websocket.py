"""WebSockets, over which browsers and some client libraries watch objects.

The client sends a watch request with `Upgrade: websocket`. After the handshake, the server sends
each event as one text frame. As in upstream, the server sends text for every sub-protocol, ignores
the messages of the client, and refuses a handshake without an Origin header or with several
sub-protocols. A sub-protocol that contains a bearer token does not count.

wsproto reads and writes the frames. The handshake is checked here, because wsproto's refusals are
not those of upstream.

upstream: golang.org/x/net/websocket/{server,hybi}.go; apiserver/pkg/endpoints/handlers/watch.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import generate_accept_token

from fairlead.apiserver.auth.authentication.token import subprotocols_without_token

_VERSION: Final = "13"
# upstream: net/url/url.go:ParseRequestURI, which accepts an absolute path, too
_ORIGIN: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:.")
# Upstream's refusal has no text. With this text, users do not take it for a refusal by RBAC.
_NO_ORIGIN: Final = "missing or bad Origin header: the handshake needs one that contains a URL"

Headers = list[tuple[bytes, bytes]]


class HandshakeError(Exception):
    """A handshake is refused with the status `code` and the body `text`."""

    def __init__(self, code: int, text: str = "", *headers: tuple[str, str]) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def handshake(headers: Mapping[str, str]) -> Headers:
    """Return the headers of the response that accepts a WebSocket. Raises HandshakeError."""
    key = headers.get("sec-websocket-key", "")
    if not key:
        raise HandshakeError(400, "mismatch challenge/response")
    if headers.get("sec-websocket-version") != _VERSION:
        supported = ("Sec-WebSocket-Version", _VERSION)
        raise HandshakeError(400, "missing or bad WebSocket Version", supported)
    if not _ORIGIN.match(headers.get("origin", "")):
        raise HandshakeError(403, _NO_ORIGIN)
    chosen = subprotocols_without_token(headers)
    if len(chosen) > 1:
        raise HandshakeError(400, "missing or bad WebSocket-Protocol")
    accepted = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", generate_accept_token(key.encode("latin-1"))),
    ]
    return accepted + [(b"sec-websocket-protocol", name.encode("latin-1")) for name in chosen]


class WebSocket:
    """The server's end of a WebSocket after the handshake; its methods return the bytes to send."""

    def __init__(self) -> None:
        """Begin with an open WebSocket."""
        self._connection = Connection(ConnectionType.SERVER)

    @property
    def is_open(self) -> bool:
        """Whether neither side has closed the WebSocket."""
        return self._connection.state is ConnectionState.OPEN

    def text_frames(self, lines: Iterable[bytes]) -> bytes:
        """Return `lines` as text frames, one frame per line; b"" if the WebSocket is closed."""
        if not self.is_open:
            return b""
        return b"".join(self._connection.send(TextMessage(data=line.decode())) for line in lines)

    def replies_to(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that answer the frames in `data`: a pong for each ping.

        If the client closes the WebSocket or violates the protocol, the last frame closes the
        WebSocket. The client's messages are discarded as their bytes arrive.
        """
        self._connection.receive_data(data)
        for event in self._connection.events():
            if isinstance(event, Ping | CloseConnection):
                yield self._connection.send(event.response())

    def close(self) -> bytes:
        """Return the frame with which the server closes the open WebSocket."""
        return self._connection.send(CloseConnection(CloseReason.NORMAL_CLOSURE))
