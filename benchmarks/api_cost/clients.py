"""Clients that cost next to nothing: keep-alive connections that send texts made beforehand.

An answer is read as far as it must be to know where it ends and what its status is; of a watch,
the events are counted.
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
_EVENT: Final = b'{"type":"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, and how its administrator shows who they are; no `tls` is plain HTTP."""

    port: int
    token: str
    tls: ssl.SSLContext | None

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> bytes:
        """The bytes of a request."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nAccept: application/json\r\n"
            f"User-Agent: benchmark/1.0\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: {content_type or 'application/json'}\r\n\r\n"
        )
        return head.encode() + body

    async def open(self, protocol: asyncio.Protocol) -> None:
        """Let `protocol` speak to the server. Raises OSError."""
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
    """Send `requests` over so many connections, each the next when it has its answer.

    None is sent before its time, `per_s` of them a second. Gives how often each status was
    answered. Raises OSError.
    """
    loop, waiting, statuses = asyncio.get_running_loop(), enumerate(requests), Counter[bytes]()
    asking = [_Asking() for _ in range(connections)]
    for one in asking:
        await address.open(one)
    began = loop.time()

    async def ask(one: _Asking) -> None:
        for number, request in waiting:
            early_s = began + number / per_s - loop.time()
            if early_s > 0:
                await asyncio.sleep(early_s)
            statuses[await one.answer(request)] += 1
        one.close()

    await asyncio.gather(*map(ask, asking))
    return statuses


async def watch(address: Address, path: str, count: int) -> Sequence[Watching]:
    """So many watches of `path`, open. Raises OSError."""
    watches = [Watching(address.request("GET", path)) for _ in range(count)]
    for first in range(0, count, OPENED_TOGETHER):
        some = watches[first : first + OPENED_TOGETHER]
        await asyncio.gather(*map(address.open, some))
        await asyncio.gather(*(one.opened.wait() for one in some))
    return watches


async def event_delays(
    address: Address, path: str, requests: Iterable[bytes], per_s: float
) -> Sequence[float]:
    """Send one request after another, each of which causes one event of a watch of `path`.

    Gives how many seconds after each answer its event arrived; negative if it came first.
    Raises OSError.
    """
    loop = asyncio.get_running_loop()
    (watching,) = await watch(address, path, 1)
    known = watching.events
    asking, answered_at = _Asking(), list[float]()
    await address.open(asking)
    began = loop.time()
    for number, request in enumerate(requests):
        await asyncio.sleep(max(0.0, began + number / per_s - loop.time()))
        await asking.answer(request)
        answered_at.append(perf_counter())
    await watching.told(known + len(answered_at))
    asking.close()
    watching.close()
    pairs = zip(answered_at, watching.told_at[known:], strict=True)
    return [told - answered for answered, told in pairs]


class _Connection(asyncio.Protocol):
    """What can be written to."""

    _transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


class Silent(_Connection):
    """Sends a request and does not read the answer."""

    def __init__(self, request: bytes) -> None:
        """`request` is sent at once."""
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        super().connection_made(transport)
        self._transport.pause_reading()
        self._transport.write(self._request)

    def close(self) -> None:
        """Hang up without waiting for what is unsent."""
        self._transport.abort()


class _Asking(_Connection):
    """One request after the other."""

    def __init__(self) -> None:
        self._head = b""
        self._left = -1
        self._is_chunked = False
        self._status = b""
        self._answered: asyncio.Future[bytes] | None = None

    async def answer(self, request: bytes) -> bytes:
        """The status of the answer, when all of it is there. Raises OSError."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    def data_received(self, data: bytes) -> None:
        """A piece of an answer."""
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
        """Nobody answers any more."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the server hung up"))


class Watching(_Connection):
    """One watch; `events` is how many it was told of."""

    def __init__(self, request: bytes) -> None:
        """`request` asks for it."""
        self.events = 0
        self.told_at: list[float] = []  # when each event arrived
        self._wanted = inf
        self._told = asyncio.Event()
        self.opened = asyncio.Event()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask at once."""
        super().connection_made(transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Each event is a line that begins with its type."""
        self.opened.set()
        arrived = data.count(_EVENT)
        self.events += arrived
        self.told_at += [perf_counter()] * arrived
        if self.events >= self._wanted:
            self._told.set()

    async def told(self, count: int) -> None:
        """Come back when there were so many events."""
        self._wanted = count
        if self.events < count:
            await self._told.wait()
