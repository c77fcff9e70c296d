"""CoalescingTransport: sends the head of a response together with the first part of its body.

uvicorn writes the head immediately, which costs every response a second system call and a second
TLS record.
"""

from __future__ import annotations

import asyncio
from typing import Final

# An interim response, for clients that wait for it before they send the body.
_CONTINUE: Final = b"HTTP/1.1 100 "


class CoalescingTransport(asyncio.Transport):
    """Wraps `transport` for one response, and delays the head until the body begins.

    A CoalescingTransport must not wrap the response to a HEAD request. This response has no body,
    so its head would never be sent.
    """

    __slots__ = ("_head", "_is_head_sent", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        """Wrap `transport` before any part of the response is written to it."""
        self._transport = transport
        self._head: bytes | None = None
        self._is_head_sent = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data`.

        The first write is the head of the response and is sent with the second write. An interim
        response (status 100) before the head is sent immediately.
        """
        if self._is_head_sent:
            self._transport.write(data)
        elif self._head is not None:
            self._is_head_sent = True
            self._transport.write(self._head + data)
        elif bytes(data).startswith(_CONTINUE):
            self._transport.write(data)
        else:
            self._head = bytes(data)

    def close(self) -> None:
        """Close after all written data is sent."""
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport is closing or closed."""
        return self._transport.is_closing()
