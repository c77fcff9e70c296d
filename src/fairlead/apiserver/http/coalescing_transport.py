"""CoalescingTransport: the head of an answer leaves together with the beginning of its body.

As ASGI means it: a head is not sent before the first part of a body is there. uvicorn writes it at
once, which costs every answer a second call of the kernel and a second record of TLS.
"""

from __future__ import annotations

import asyncio
from typing import Final

# Written before any answer, to clients who wait for it with their body.
_CONTINUE: Final = b"HTTP/1.1 100 "


class CoalescingTransport(asyncio.Transport):
    """What the one answer to a request is written to: `transport`, but for the head.

    Not for answers to HEAD, to whose body nothing is ever written.
    """

    __slots__ = ("_head", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        """Nothing has been written."""
        self._transport = transport
        self._head: bytes | None = None
        self._is_begun = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data`, a head when more comes."""
        if self._is_begun:
            self._transport.write(data)
        elif self._head is not None:
            self._is_begun = True
            self._transport.write(self._head + data)
        elif bytes(data).startswith(_CONTINUE):
            self._transport.write(data)
        else:
            self._head = bytes(data)

    def close(self) -> None:
        """Hang up when all that was sent has left."""
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether that has begun."""
        return self._transport.is_closing()
