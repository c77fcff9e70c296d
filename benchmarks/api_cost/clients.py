"""Clients that use little CPU time: keep-alive connections that send prepared requests.

The clients parse only the status and the end of an answer, and count the events of a watch.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Final, cast

Statuses = Counter[bytes]

HOST: Final = "127.0.0.1"
OPENED_TOGETHER: Final = 50
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_LAST_CHUNK: Final = b"0\r\n\r\n"
_END_OF_EVENT: Final = b"}\n"  # an event is a line, because newlines in JSON texts are escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The port of a server and its administrator's token; `tls` is None for plain HTTP."""

    port: int
    token: str
    tls: ssl.SSLContext | None

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> bytes:
        """Return an HTTP request as bytes; the default `content_type` is JSON."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nAccept: application/json\r\n"
            f"User-Agent: benchmark/1.0\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: {content_type or 'application/json'}\r\n\r\n"
        )
        return head.encode() + body

    async def open(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the server. Raises OSError."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(
            lambda: protocol,
            HOST,
            self.port,
            ssl=self.tls,
            server_hostname=HOST if self.tls else None,
        )


async def ask_all(
    address: Address, requests: Iterable[bytes], connections: int, per_s: float = inf
) -> Statuses:
    """Send `requests` over `connections` connections; return the number of answers by status.

    A connection sends its next request after the answer to the previous request. All connections
    together send at most `per_s` requests per second. Raises OSError.
    """
    loop, waiting, statuses = asyncio.get_running_loop(), enumerate(requests), Counter[bytes]()
    asking = [_RequestConnection() for _ in range(connections)]
    for one in asking:
        await address.open(one)
    began = loop.time()

    async def ask(one: _RequestConnection) -> None:
        for number, request in waiting:
            early_s = began + number / per_s - loop.time()
            if early_s > 0:
                await asyncio.sleep(early_s)
            statuses[await one.answer(request)] += 1
        one.close()

    await asyncio.gather(*map(ask, asking))
    return statuses


async def answer_delays(
    address: Address, request: bytes, every_s: float, is_over: asyncio.Event
) -> list[float]:
    """Send `request` again and again until `is_over` is set; return the seconds to each answer.

    The requests are sent over one connection, each `every_s` seconds after the previous answer.
    Raises OSError.
    """
    asking, delays = _RequestConnection(), list[float]()
    await address.open(asking)
    while not is_over.is_set():
        began = perf_counter()
        await asking.answer(request)
        delays.append(perf_counter() - began)
        await asyncio.sleep(every_s)
    asking.close()
    return delays


async def watch(address: Address, path: str, count: int) -> Sequence[Watching]:
    """Return `count` open watches of `path`. Raises OSError."""
    watches = [Watching(address.request("GET", path)) for _ in range(count)]
    for first in range(0, count, OPENED_TOGETHER):
        some = watches[first : first + OPENED_TOGETHER]
        await asyncio.gather(*map(address.open, some))
        await asyncio.gather(*(one.opened.wait() for one in some))
    return watches


async def event_delays(
    address: Address, path: str, requests: Iterable[bytes], per_s: float
) -> Sequence[float]:
    """Return the seconds from each answer to the event that the request caused.

    The `requests` are sent one after another, at most `per_s` per second, and each causes one event
    in a watch of `path`. A value is negative if the event arrived before the answer. Raises
    OSError.
    """
    loop = asyncio.get_running_loop()
    (watching,) = await watch(address, path, 1)
    known = watching.events
    asking, answered_at = _RequestConnection(), list[float]()
    await address.open(asking)
    began = loop.time()
    for number, request in enumerate(requests):
        await asyncio.sleep(max(0.0, began + number / per_s - loop.time()))
        await asking.answer(request)
        answered_at.append(perf_counter())
    await watching.wait_for(known + len(answered_at))
    asking.close()
    watching.close()
    pairs = zip(answered_at, watching.arrived_at[known:], strict=True)
    return [arrived - answered for answered, arrived in pairs]


class _Connection(asyncio.Protocol):
    """A connection with a transport, which `close` closes."""

    _transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class is not a subclass

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class Silent(_Connection):
    """Sends a request and does not read the answer."""

    def __init__(self, request: bytes) -> None:
        """Prepare a connection that sends `request` when it is open."""
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        super().connection_made(transport)
        self._transport.pause_reading()
        self._transport.write(self._request)

    def close(self) -> None:
        """Abort the connection; unsent data is lost."""
        self._transport.abort()


class _RequestConnection(_Connection):
    """A connection that sends one request after another."""

    def __init__(self) -> None:
        self._head = b""
        self._left = -1
        self._is_chunked = False
        self._status = b""
        self._answered: asyncio.Future[bytes] | None = None

    async def answer(self, request: bytes) -> bytes:
        """Send `request`; return the status when the answer is complete. Raises OSError."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    def data_received(self, data: bytes) -> None:
        """Read a part of an answer."""
        if self._left < 0:
            self._head += data
            end = self._head.find(_END_OF_HEAD)
            if end < 0:
                return
            self._begin(self._head[:end])
            data, self._head = self._head[end + len(_END_OF_HEAD) :], b""
        self._left -= len(data)
        is_over = data.endswith(_LAST_CHUNK) if self._is_chunked else self._left == 0
        if is_over and self._answered is not None:
            self._left, self._is_chunked = -1, False
            self._answered.set_result(self._status)

    def _begin(self, head: bytes) -> None:
        self._status = head[9:12]
        start = head.find(_LENGTH)
        self._is_chunked = start < 0
        if self._is_chunked:
            self._left = sys.maxsize
        else:
            self._left = int(head[start + len(_LENGTH) :].partition(b"\r\n")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        """Raise an error in the caller of `answer` that still waits."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the server closed the connection"))


class Watching(_Connection):
    """A watch: the number of events that arrived, and the times at which they arrived."""

    def __init__(self, request: bytes) -> None:
        """Prepare a watch that `request` opens."""
        self.events = 0
        self.arrived_at: list[float] = []  # when each event arrived
        self._last = b""  # the last byte that arrived
        self._wanted = inf
        self._reached = asyncio.Event()
        self.opened = asyncio.Event()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        super().connection_made(transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count the events; each is a line."""
        self.opened.set()
        arrived = (self._last + data).count(_END_OF_EVENT)
        self._last = data[-1:]
        self.events += arrived
        self.arrived_at += [perf_counter()] * arrived
        if self.events >= self._wanted:
            self._reached.set()

    async def wait_for(self, count: int) -> None:
        """Return when `count` events have arrived."""
        self._wanted = count
        if self.events < count:
            await self._reached.wait()
