"""Reads the bodies of requests; limits the size and time of each, and the memory of all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

USER_BYTES_MAX: Final = 24 << 20
TOTAL_BYTES_MAX: Final = 96 << 20

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
# Counts further bytes of a body. Raises TooManyBodiesError.
Count = Callable[[int], None]


class ClientGone(Exception):  # noqa: N818 - an event, not an error
    """The client disconnected before the end of the body."""


class BodyTooLongError(Exception):
    """The body, or its Content-Length, is too long."""


class TooManyBodiesError(Exception):
    """The bodies of open requests, of one user or of all, take too much memory."""


class BodyBudget:
    """Limits how many bytes of each user's request bodies are in memory."""

    def __init__(self) -> None:
        """Start without open requests."""
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def request_of(self, user: str) -> Iterator[Count]:
        """Count the body of a request of `user` against the budget while the request is open."""
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            if self._bytes[user] + size > USER_BYTES_MAX:
                raise TooManyBodiesError
            if self._bytes.total() + size > TOTAL_BYTES_MAX:
                raise TooManyBodiesError
            self._bytes[user] += size
            counted += size

        try:
            yield count
        finally:
            self._bytes[user] -= counted
            if not self._bytes[user]:
                del self._bytes[user]


async def read_body(
    headers: Mapping[str, str],
    receive: Receive,
    *,
    bytes_max: int,
    seconds_max: float,
    count: Count | None = None,
) -> bytes:
    """Read the whole body, and `count` its bytes as they arrive.

    Raises BodyTooLongError, TooManyBodiesError, TimeoutError, ClientGone.
    """
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > bytes_max:
        raise BodyTooLongError
    body = bytearray()
    async with asyncio.timeout(seconds_max):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            part = message.get("body", b"")
            if count is not None:
                count(len(part))
            body += part
            if len(body) > bytes_max:
                raise BodyTooLongError
            if not message.get("more_body", False):
                return bytes(body)
