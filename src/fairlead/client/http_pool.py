"""HttpPool: connections to one server that are kept open for short requests with a body.

A request uses the idle connection that was used last. If no connection is idle, a new connection is
opened, up to a maximum. A binding costs a third of its cost with a general HTTP client, which
matters when thousands of bindings are sent. Proxies, redirects, compression and streams are not
supported: RestClient uses aiohttp for such requests.

upstream: net/http/transport.go
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from asyncio import AbstractEventLoop
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote, urlsplit

import httptools
from aiohappyeyeballs import start_connection

FALLBACK_DELAY_S: Final = 0.3  # upstream: net/dial.go: fallbackDelay
_PLAIN_TARGET: Final = re.compile(r"[A-Za-z0-9\-._~/:?&=%+]*")
# Methods whose effect is the same once or twice.
_IDEMPOTENT: Final = ("PUT", "DELETE")


class UnreachableError(Exception):
    """The server did not respond; the text is the reason."""


@dataclass(slots=True)
class HttpResponse:
    """A response; `date` and `retry_after` are the Date and Retry-After headers, "" if absent."""

    status: int = 0
    date: str = ""
    retry_after: str = ""
    body: bytes = b""


class HttpPool:
    """A pool of connections to `server`, a URL; `close` closes them."""

    def __init__(
        self,
        server: str,
        *,
        connections_max: int,
        connect_seconds_max: float,
        tls_server_name: str = "",
        bytes_max: int | None = None,
    ) -> None:
        """Prepare the pool.

        A response with a body longer than `bytes_max` counts as a failed connection.
        """
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls_server_name = tls_server_name or self._host
        self._connect_seconds_max = connect_seconds_max
        self._bytes_max = bytes_max
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._slots = asyncio.Semaphore(connections_max)
        self._idle: list[_Connection] = []
        self._tls: ssl.SSLContext | None = None
        self._is_closed = False

    def close(self) -> None:
        """Close the idle connections now, and each busy connection when its request ends."""
        self._is_closed = True
        self._close_idle()

    def head(self, headers: list[tuple[str, str]]) -> bytes:
        """Return the header lines for `send`: the Host header and `headers`."""
        named = [("Host", self._authority), *headers]
        return "".join(f"{name}: {text}\r\n" for name, text in named).encode("ascii")

    async def send(
        self,
        method: str,
        target: str,
        head: bytes,
        body: bytes,
        *,
        tls: ssl.SSLContext | None,
        seconds_max: float,
    ) -> HttpResponse:
        """Send a request for `target`, a path with its query, and return the response.

        A PUT or DELETE is repeated on a new connection if the server closed an idle one. Raises
        UnreachableError or TimeoutError.
        """
        if not _PLAIN_TARGET.fullmatch(target):
            target = quote(target, safe="/:?&=%+~!$'()*,;@")
        start = f"{method} {self._prefix}{target} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
        request = b"".join((start.encode("ascii"), head, b"\r\n", body))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds_max
        if self._slots.locked():
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        else:
            await self._slots.acquire()
        try:
            while True:
                connection = self._take_idle(tls)
                was_idle = connection is not None
                if connection is None:
                    connection = await self._open(loop, tls, deadline)
                try:
                    response = await self._exchange(connection, loop, request, deadline)
                except UnreachableError:
                    if was_idle and method in _IDEMPOTENT and not connection.has_answered:
                        continue
                    raise
                return response
        finally:
            self._slots.release()

    def _take_idle(self, tls: ssl.SSLContext | None) -> _Connection | None:
        """Return the idle connection that was used last; None if there is none."""
        if tls is not self._tls:  # another client certificate
            self._close_idle()
            self._tls = tls
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return None

    async def _open(
        self, loop: AbstractEventLoop, tls: ssl.SSLContext | None, deadline: float
    ) -> _Connection:
        """Open a connection, trying IPv4 and IPv6 addresses in parallel."""
        end = min(deadline, loop.time() + self._connect_seconds_max)
        try:
            async with asyncio.timeout_at(end):
                addresses = await loop.getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
                )
                opened = await start_connection(
                    addresses, happy_eyeballs_delay=FALLBACK_DELAY_S, loop=loop
                )
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self._bytes_max),
                    sock=opened,
                    ssl=tls,
                    server_hostname=self._tls_server_name if tls is not None else None,
                )
        except ssl.SSLCertVerificationError as cause:
            text = f"the server's certificate is not trusted: {cause}"
            raise UnreachableError(text) from cause
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as cause:
            reason = getattr(cause, "strerror", None) or cause
            raise UnreachableError(f"cannot connect: {reason}") from cause
        connection.tls = tls
        return connection

    async def _exchange(
        self, connection: _Connection, loop: AbstractEventLoop, request: bytes, deadline: float
    ) -> HttpResponse:
        timer = loop.call_at(deadline, self._expire, connection)
        try:
            response = await connection.send(request)
        except BaseException:
            connection.abort()
            raise
        finally:
            timer.cancel()
        if self._is_closed or connection.is_closed or connection.tls is not self._tls:
            connection.abort()
        else:
            self._idle.append(connection)
        return response

    def _expire(self, connection: _Connection) -> None:
        """Fail a request that took too long, and close the idle connections."""
        connection.fail(TimeoutError())
        self._close_idle()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()


class _Connection(asyncio.Protocol):
    """One connection, which has at most one request in flight."""

    def __init__(self, loop: AbstractEventLoop, bytes_max: int | None) -> None:
        """Start without a transport."""
        self.is_closed = False
        self.has_answered = False  # whether bytes of the response in progress have arrived
        self.tls: ssl.SSLContext | None = None
        self._loop = loop
        self._bytes_max = bytes_max
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response = HttpResponse()
        self._chunks: list[bytes] = []
        self._size = 0
        self._has_end = False  # whether the response states where its body ends

    def send(self, request: bytes) -> asyncio.Future[HttpResponse]:
        """Send a request; the future receives the response or an UnreachableError."""
        assert self._transport is not None
        waiter = self._waiter = self._loop.create_future()
        self.has_answered = False
        self._transport.write(request)
        return waiter

    def fail(self, cause: Exception) -> None:
        """Fail the request in flight with the exception `cause`, and close the connection."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(cause)
        self.abort()

    def abort(self) -> None:
        """Close the connection immediately."""
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no common class

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a response; unexpected bytes without a request close the connection."""
        if self._waiter is None:
            self.abort()
            return
        self.has_answered = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as cause:
            self.fail(UnreachableError(f"the connection failed: the answer is not HTTP ({cause})"))

    def connection_lost(self, cause: Exception | None) -> None:
        """Complete a response that ends with the connection, or fail the request."""
        self.is_closed = True
        if self._waiter is None:
            return
        if self._response.status >= 200 and not self._has_end and cause is None:
            self.on_message_complete()
        else:
            text = str(cause or "the server closed it")
            self.fail(UnreachableError(f"the connection failed: {text}"))

    # --- httptools -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start to collect a new response."""
        self._response = HttpResponse()
        self._chunks, self._size, self._has_end = [], 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the headers that HttpResponse contains."""
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_end = True
            case b"date":
                self._response.date = value.decode("latin-1")
            case b"retry-after":
                self._response.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the HTTP status."""
        self._response.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Store a part of the body; fail the request if the body is too long."""
        self._chunks.append(body)
        self._size += len(body)
        if self._bytes_max is not None and self._size > self._bytes_max:
            problem = f"the answer has more than {self._bytes_max >> 20} MiB"
            self.fail(UnreachableError(f"the connection failed: {problem}"))

    def on_message_complete(self) -> None:
        """Pass the complete response to the request's future; ignore a 1xx response."""
        response, waiter = self._response, self._waiter
        if response.status < 200 or waiter is None:
            return
        self._waiter = None
        response.body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        if not self._parser.should_keep_alive():
            self.abort()
        if not waiter.done():
            waiter.set_result(response)
