"""HttpPool: sends requests to one server over connections that stay open between requests.

A request uses the idle connection that was used last. If no connection is idle, `send` opens a new
connection. If the maximum number of requests is in flight, `send` first waits until one of them
ends. `send` returns the response. `begin` sends a request only if a connection is idle, and passes
the response to a function. `begin` needs no asyncio task for each request. As a result, sending a
Binding takes less than a third of the CPU time that a general HTTP client needs. The pool does not
support proxies and streams; RestClient uses HttpSession for them. Redirects are not followed.

upstream: net/http/transport.go
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from asyncio import AbstractEventLoop
from collections import deque
from typing import Final
from urllib.parse import quote, urlsplit

from aiohappyeyeballs import start_connection

from fairlead.client.http.connection import (
    HttpConnection,
    HttpResponse,
    NewBodyLimit,
    OnEnd,
    UnreachableError,
)

FALLBACK_DELAY_S: Final = 0.3  # upstream: net/dial.go: fallbackDelay
_PLAIN_TARGET: Final = re.compile(r"[A-Za-z0-9\-._~/:?&=%+]*")
# Methods for which sending a request twice has the same effect as sending it once.
IDEMPOTENT: Final = ("GET", "PUT", "DELETE")


class HttpPool:
    """A pool of connections to `server`, a URL; `close` closes them."""

    def __init__(
        self,
        server: str,
        *,
        connections_max: int,
        connect_seconds_max: float,
        read_seconds_max: float,
        new_limit: NewBodyLimit,
        tls_server_name: str = "",
    ) -> None:
        """Prepare the pool.

        A request without a timeout fails if no byte of its response arrives for
        `read_seconds_max` seconds. If the body of a response is longer than the limit that
        `new_limit` returns, the request fails as if the connection had failed. The server's
        certificate must be valid for `tls_server_name`, or for the host of `server` if
        `tls_server_name` is "".
        """
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls_server_name = tls_server_name or self._host
        self._connect_seconds_max = connect_seconds_max
        self._read_seconds_max = read_seconds_max
        self._new_limit = new_limit
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._connections_max = connections_max
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()  # requests that wait for a connection
        self._idle: list[HttpConnection] = []
        self._busy: set[HttpConnection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0  # at or before the first deadline in _busy, in the loop's time
        self._tls: ssl.SSLContext | None = None
        self._is_closed = False

    def close(self) -> None:
        """Close the idle connections now, and each busy connection when its request ends."""
        self._is_closed = True
        self._close_idle()
        if self._timer is not None and not self._busy:
            self._timer.cancel()
            self._timer = None

    def head(self, headers: list[tuple[str, str]]) -> bytes:
        """Return the bytes of the Host header and `headers`, for `send` and `encode`."""
        named = [("Host", self._authority), *headers]
        return "".join(f"{name}: {text}\r\n" for name, text in named).encode("ascii")

    async def send(
        self,
        method: str,
        target: str,
        head: bytes,
        body: bytes | None,
        *,
        tls: ssl.SSLContext | None,
        seconds_max: float | None,
    ) -> HttpResponse:
        """Send a request for `target`, a path with its query, and return the response.

        `head` is the result of `HttpPool.head`, and `body` is None for a request without a body.
        `tls` is None for plain HTTP.

        The request fails after `seconds_max` seconds. If `seconds_max` is None, the request fails
        when no byte of the response has arrived for the pool's `read_seconds_max` seconds. If a
        connection that was idle fails before a response begins, a GET, PUT or DELETE is repeated on
        another connection. Raises UnreachableError or TimeoutError if the request fails.
        """
        request = self.encode(method, target, head, body)
        loop = asyncio.get_running_loop()
        deadline = None if seconds_max is None else loop.time() + seconds_max
        await self._acquire(loop, deadline)
        try:
            while True:
                connection = self._take_idle(tls)
                was_idle = connection is not None
                if connection is None:
                    connection = await self._open(loop, tls, deadline)
                try:
                    response = await self._exchange(connection, loop, request, deadline)
                except UnreachableError:
                    if was_idle and method in IDEMPOTENT and not connection.has_response_bytes:
                        continue
                    raise
                return response
        finally:
            self._release()

    def begin(
        self, request: bytes, *, tls: ssl.SSLContext | None, seconds_max: float, on_end: OnEnd
    ) -> bool:
        """Send `request` on an idle connection; return whether it was sent.

        `request` is a result of `encode`. If it is sent, `on_end` is called once, after this method
        has returned. The request is not sent if no connection is idle or if other requests wait for
        a connection. A request that was sent is never repeated.
        """
        connection = None if self._waiting else self._take_idle(tls)
        if connection is None:
            return False
        loop = asyncio.get_running_loop()
        self._in_flight += 1

        def end(response: HttpResponse | Exception) -> None:
            self._return(connection)
            self._release()
            on_end(response)

        self._start(connection, loop, request, loop.time() + seconds_max, end)
        return True

    def encode(self, method: str, target: str, head: bytes, body: bytes | None) -> bytes:
        """Return the bytes of a request; `head` is the result of `HttpPool.head`."""
        if not _PLAIN_TARGET.fullmatch(target):
            target = quote(target, safe="/:?&=%+~!$'()*,;@")
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        start = f"{method} {self._prefix}{target} HTTP/1.1\r\n{length}"
        return b"".join((start.encode("ascii"), head, b"\r\n", body or b""))

    # --- how many requests are in flight ---------------------------------------------------

    async def _acquire(self, loop: AbstractEventLoop, deadline: float | None) -> None:
        """Wait until fewer than `connections_max` requests are in flight; count the new request.

        Raises TimeoutError if too many requests are still in flight at `deadline`.
        """
        while self._in_flight >= self._connections_max:
            waiter = loop.create_future()
            self._waiting.append(waiter)
            try:
                async with asyncio.timeout_at(deadline):
                    await waiter
            except BaseException:
                if waiter.done() and not waiter.cancelled():
                    self._wake_next()  # this request gives up after it was woken
                raise
        self._in_flight += 1

    def _release(self) -> None:
        self._in_flight -= 1
        self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    # --- connections -----------------------------------------------------------------------

    def _take_idle(self, tls: ssl.SSLContext | None) -> HttpConnection | None:
        """Remove and return the idle connection that was used last; None if there is none.

        If `tls` differs from the previous TLS settings, close all idle connections and return None.
        """
        if tls is not self._tls:  # the TLS settings have changed
            self._close_idle()
            self._tls = tls
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return None

    async def _open(
        self, loop: AbstractEventLoop, tls: ssl.SSLContext | None, deadline: float | None
    ) -> HttpConnection:
        """Open a connection, trying IPv4 and IPv6 addresses in parallel.

        Raises UnreachableError if no connection can be opened, and TimeoutError at `deadline`.
        """
        end = loop.time() + self._connect_seconds_max
        if deadline is not None:
            end = min(end, deadline)
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
                    lambda: HttpConnection(self._new_limit, self._read_seconds_max, loop.time),
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
        self,
        connection: HttpConnection,
        loop: AbstractEventLoop,
        request: bytes,
        deadline: float | None,
    ) -> HttpResponse:
        ended: asyncio.Future[HttpResponse] = loop.create_future()

        def end(response: HttpResponse | Exception) -> None:
            if ended.done():
                return
            if isinstance(response, HttpResponse):
                ended.set_result(response)
            else:
                ended.set_exception(response)

        self._start(connection, loop, request, deadline, end)
        try:
            return await ended
        except BaseException:
            connection.abort()
            raise
        finally:
            self._return(connection)

    def _start(
        self,
        connection: HttpConnection,
        loop: AbstractEventLoop,
        request: bytes,
        deadline: float | None,
        on_end: OnEnd,
    ) -> None:
        """Send a request on `connection`; the request fails at `deadline`.

        If `deadline` is None, the request fails when no byte of the response has arrived for the
        pool's `read_seconds_max` seconds.
        """
        self._busy.add(connection)
        connection.send(request, on_end, deadline)
        if self._timer is None or connection.deadline < self._timer_due:
            self._set_timer(loop, connection.deadline)

    def _return(self, connection: HttpConnection) -> None:
        """Keep the connection of an ended request for later requests, or close it.

        The connection is closed if the pool is closed or if the TLS settings have changed.
        """
        self._busy.discard(connection)
        if self._is_closed or connection.is_closed or connection.tls is not self._tls:
            connection.abort()
        else:
            self._idle.append(connection)

    def _set_timer(self, loop: AbstractEventLoop, instant: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = instant
        self._timer = loop.call_at(instant, self._expire, loop)

    def _expire(self, loop: AbstractEventLoop) -> None:
        """Fail the requests that took too long; if there were any, close the idle connections too.

        One timer serves all requests, because a timer for each request costs CPU time.
        """
        self._timer = None
        now = loop.time()
        late = [one for one in self._busy if one.deadline <= now]
        for connection in late:
            connection.fail(TimeoutError())
        if late:
            self._close_idle()
        if self._busy:
            self._set_timer(loop, min(one.deadline for one in self._busy))

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
