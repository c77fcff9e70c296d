"""TimeoutHttpProtocol: limits connections, and disconnects clients that are slow or send too much.

uvicorn closes idle connections. This protocol also closes a connection if

    it is opened while CONNECTIONS_MAX connections are open                  (status 503)
    its request head is longer than HEAD_BYTES_MAX                           (status 431)
    its request has several Host headers, or none in HTTP/1.1                (status 400)
    its request head is incomplete after HEAD_SECONDS_MAX
    its client does not read the response for READING_SECONDS_MAX
    more than UNREAD_MAX clients have stopped reading their responses; its client was the first to
        stop, and stopped at least UNREAD_SECONDS_MIN ago
    its client keeps sending a body after the request was refused

upstream: Go's net/http/server.go:readRequest, which has the same texts for status 400 and 431
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fairlead.apiserver.http.coalescing_transport import CoalescingTransport
from fairlead.apiserver.http.peer_certificate import PEER, peer_of

if TYPE_CHECKING:
    from fairlead.apiserver.http.websocket import WebSocket

HEAD_SECONDS_MAX: Final = 10.0
HEAD_BYTES_MAX: Final = 64 << 10
READING_SECONDS_MAX: Final = 30.0
UNSENT_BYTES_MAX: Final = 16 << 10  # by default uvloop buffers 512 KiB per TLS connection
UNREAD_SECONDS_MIN: Final = 1.0
UNREAD_MAX: Final = 400
CONNECTIONS_MAX: Final = 4_096
LINGER_SECONDS_MAX: Final = 1.0  # so that a refusal arrives before the connection is aborted
FLUSH_SECONDS_MAX: Final = 0.05  # so that the end of a response is sent before the abort
IDLE_SECONDS_MAX: Final = 120  # more than the 90 s for which Go clients keep idle connections
_LONG_HEAD: Final = "431 Request Header Fields Too Large"
_LONG_HEAD_RESPONSE: Final = (
    f"HTTP/1.1 {_LONG_HEAD}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    f"Content-Length: {len(_LONG_HEAD)}\r\n\r\n{_LONG_HEAD}"
).encode()
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 21\r\n\r\ntoo many connections\n"
)
_LINE_BYTES: Final = 4  # the size of a header in addition to its name and value
# The state of a request that may be upgraded contains, under this key, a function of a `WebSocket`
# and an ASGI message, which replaces `send` of ASGI: it sends the head of the response with status
# 101, then the body without any encoding, and finally a frame that closes the WebSocket.
UPGRADE: Final = "fairlead.upgrade"
# A key of the server's state. Its value contains the connections whose clients do not read, the
# longest wait first.
_UNREAD: Final = "fairlead.unread"


def uvicorn_config(app: Any, **more: Any) -> uvicorn.Config:
    """Return uvicorn's configuration for the ASGI `app`; `more` are additional uvicorn options.

    uvicorn itself accepts no WebSockets (see UPGRADE). The server sends no Server header, writes no
    logs, and ignores proxy headers.
    """
    return uvicorn.Config(
        app,
        http=TimeoutHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        **more,
    )


class TimeoutHttpProtocol(HttpToolsProtocol):
    """One HTTP connection with its timeouts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Store uvicorn's arguments; no timeout starts yet."""
        super().__init__(*arguments, **options)
        self._head = _Deadline()
        self._reading = _Deadline()
        self._linger = _Deadline()
        self._head_bytes = 0
        self._discards = False
        self._is_stopping = False
        self._websocket: WebSocket | None = None
        self._unread: dict[TimeoutHttpProtocol, float] = self.app_state.setdefault(_UNREAD, {})

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the client certificate and start the head timeout, or refuse the connection."""
        super().connection_made(transport)  # type: ignore[arg-type] # uvicorn narrows it
        self.transport.set_write_buffer_limits(UNSENT_BYTES_MAX)
        peer = peer_of(transport)
        if peer is not None:
            self.app_state = {**self.app_state, PEER: peer}  # a copy: app_state is shared
        if len(self.connections) > CONNECTIONS_MAX:
            self.transport.write(_TOO_MANY)
            self.transport.close()
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Receive data; refuse the request if its head is too long."""
        if self.transport.is_closing() or self._discards:
            return
        if self._websocket is not None:
            self._receive_frames(self._websocket, data)
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and not self._head.is_set:
            self._expect_head()
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head.is_set and self._head_bytes > HEAD_BYTES_MAX:
            self._refuse_long_head()

    def on_message_begin(self) -> None:
        """Start the timeout for the head of a new request."""
        super().on_message_begin()
        if not self._head.is_set:  # a pipelined request
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Cancel the timeout of the request head, and refuse the request if the head is invalid."""
        self._head.clear()
        problem = self._head_problem()
        if problem:
            self.app, self.url = _refusal(problem), b"/"
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":
            self.cycle.transport = CoalescingTransport(self.transport)
        if self.parser.should_upgrade():
            self.scope["state"][UPGRADE] = partial(self._send_upgraded, self.cycle)

    def on_response_complete(self) -> None:
        """Schedule the abort of a closing connection.

        While the server is stopping, the abort follows after FLUSH_SECONDS_MAX (see `shutdown`). At
        other times, the connection is aborted only if the request was refused before its whole body
        arrived. The abort then follows after LINGER_SECONDS_MAX, so that the client has time to
        receive the refusal.
        """
        super().on_response_complete()
        if self._is_stopping:
            self._abort_soon()
        elif self.transport.is_closing() and self.cycle.more_body:
            self._linger.set(self.loop, LINGER_SECONDS_MAX, self.transport)

    def pause_writing(self) -> None:
        """Start the timeout for a client that has stopped reading the response."""
        super().pause_writing()
        self._reading.set(self.loop, READING_SECONDS_MAX, self.transport)
        now = self.loop.time()
        self._unread[self] = now
        if len(self._unread) > UNREAD_MAX:
            oldest, since = next(iter(self._unread.items()))
            if now - since >= UNREAD_SECONDS_MIN:
                oldest.transport.abort()

    def resume_writing(self) -> None:
        """Cancel the timeout that `pause_writing` started, because the client reads again."""
        self._reading.clear()
        self._unread.pop(self, None)
        super().resume_writing()

    def shutdown(self) -> None:
        """Close the connection when its response is complete; called when the server stops.

        If closing takes longer than FLUSH_SECONDS_MAX, the connection is aborted. Closing a TLS
        connection waits for the client's reply, and a client that does not read sends no reply.
        """
        self._is_stopping = True
        super().shutdown()
        self._abort_soon()

    async def _send_upgraded(
        self, cycle: RequestResponseCycle, websocket: WebSocket, message: MutableMapping[str, Any]
    ) -> None:
        """Send an ASGI message of the response of `cycle` over `websocket` (see UPGRADE)."""
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        if message["type"] == "http.response.start":
            cycle.response_started = True
            self._websocket = websocket
            lines = [b"%s: %s\r\n" % header for header in message["headers"]]
            self.transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\n" + b"".join(lines) + b"\r\n"
            )
            return
        if message["body"]:
            self.transport.write(message["body"])
        if not message.get("more_body"):
            cycle.response_complete = True
            self.transport.write(websocket.close())
            self._close_connection()

    def _receive_frames(self, websocket: WebSocket, data: bytes) -> None:
        """Reply to pings, and end the response if the client ends the WebSocket."""
        for reply in websocket.replies_to(data):
            # A client that sends pings but does not read must not fill the memory.
            if not self.flow.write_paused or not websocket.is_open:
                self.transport.write(reply)
        if not websocket.is_open:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._close_connection()

    def _close_connection(self) -> None:
        self.transport.close()
        if self._is_stopping:
            self._abort_soon()

    def _abort_soon(self) -> None:
        if self.transport.is_closing() and self not in self._unread:
            self._linger.set(self.loop, FLUSH_SECONDS_MAX, self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timeouts of the closed connection."""
        self._head.clear()
        self._reading.clear()
        self._linger.clear()
        self._unread.pop(self, None)
        super().connection_lost(exc)

    def _head_problem(self) -> str:
        """Return the status line that refuses an invalid request head; "" if the head is valid."""
        size = sum(len(name) + len(value) for name, value in self.headers)
        if size + _LINE_BYTES * len(self.headers) + len(self.url) > HEAD_BYTES_MAX:
            return _LONG_HEAD
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1:
            return "400 Bad Request: too many Host headers"
        if not hosts and self.parser.get_http_version() == "1.1":
            return "400 Bad Request: missing required Host header"
        return ""

    def _refuse_long_head(self) -> None:
        """Refuse a request whose head is too long and not complete yet.

        The rest of the head is discarded until the client closes the connection, or until
        LINGER_SECONDS_MAX have passed. Closing the connection while data arrives would send the
        client a reset instead of the refusal. If the response to an earlier request is not
        complete, the connection is aborted.
        """
        # upstream: Go's net/http/server.go:closeWriteAndWait
        is_idle = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or not is_idle:
            self.transport.abort()
            return
        self._head.clear()
        self._discards = True
        self.transport.write(_LONG_HEAD_RESPONSE)
        self._linger.set(self.loop, LINGER_SECONDS_MAX, self.transport)

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head.set(self.loop, HEAD_SECONDS_MAX, self.transport)


def _refusal(problem: str) -> Any:
    """Return an ASGI application that sends the status line `problem` and closes the connection."""
    status, body = int(problem[:3]), problem.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]

    async def refuse(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return refuse


class _Deadline:
    """Aborts a connection some seconds after `set`, unless `clear` is called first."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def set(
        self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport
    ) -> None:
        self.clear()
        self._timer = loop.call_later(seconds, transport.abort)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
