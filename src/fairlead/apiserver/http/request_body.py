"""Reads request bodies; limits the size and time of each body, and the memory of all bodies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

USER_BYTES_MAX: Final = 24 << 20
TOTAL_BYTES_MAX: Final = 96 << 20

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
# Adds a number of bytes to those of a body. Raises TooManyBodiesError.
Count = Callable[[int], None]


class ClientGone(Exception):  # noqa: N818 - an event, not an error
    """The client disconnected before its request body was complete."""


class BodyTooLongError(Exception):
    """The body, or the Content-Length header, exceeds the limit."""


class TooManyBodiesError(Exception):
    """The bodies of all open requests, or of one user's requests, take too much memory."""


class BodyBudget:
    """Limits the number of bytes of request bodies in memory, in total and for each user."""

    def __init__(self) -> None:
        """Start with a count of 0 bytes for every user."""
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def request_of(self, user: str) -> Iterator[Count]:
        """Yield a function that counts the bytes of a request body of `user`.

        The function takes the size of the body's next part. The function raises TooManyBodiesError
        if this part would exceed the limit for `user` or the limit for all users together. At the
        end of the `with` block, the bytes of this body no longer count.
        """
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
    """Read the whole body; `count` is called with the number of bytes in each part.

    Raises BodyTooLongError for more than `bytes_max` bytes, and TimeoutError after `seconds_max`.
    Raises TooManyBodiesError if `count` raises it, and ClientGone if the client disconnects.
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
