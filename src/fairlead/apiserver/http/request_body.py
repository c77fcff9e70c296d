"""Reads the body of a request, bounded in size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):  # noqa: N818 - an event, not an error
    """The client disconnected before the end of the body."""


class BodyTooLongError(Exception):
    """The body, or its Content-Length, is too long."""


async def read_body(
    headers: Mapping[str, str], receive: Receive, *, bytes_max: int, seconds_max: float
) -> bytes:
    """The whole body. Raises BodyTooLongError, TimeoutError, ClientGone."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > bytes_max:
        raise BodyTooLongError
    body = bytearray()
    async with asyncio.timeout(seconds_max):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > bytes_max:
                raise BodyTooLongError
            if not message.get("more_body", False):
                return bytes(body)
