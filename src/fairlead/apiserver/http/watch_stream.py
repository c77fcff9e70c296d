"""Streaming: the lines of a watch, as they come, to a client that may leave at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from fairlead.apiserver.endpoints.collection.watch import Watch, Watches
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.chunk import chunks_of

SEND_INTERVAL_S: Final = 0.05
NO_CACHE: Final = (b"cache-control", b"no-cache, private")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Settle = Callable[[], Awaitable[None]]


async def stream(
    watch: Watch, watches: Watches, receive: Receive, send: Send, settle: Settle | None = None
) -> None:
    """Send the lines of `watch` until it is over or the client has left.

    `settle` comes back when what happened so far can no longer be lost: nobody is told of anything
    else, since it could be undone. When it raises ApiError the watch is over.
    """
    headers = [NO_CACHE, (b"content-type", watch.content_type.encode())]
    leaving: asyncio.Task[Message] | None = None
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        leaving = asyncio.ensure_future(_left(receive))
        await _Streaming(watch, watches, send, leaving, settle).run()
    finally:
        watch.on_data = None
        watch.close()
        if leaving is not None:
            leaving.cancel()


async def _left(receive: Receive) -> Message:
    """Come back when the client has left."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message


class _Streaming:
    """One watch on its way; `_woken` is what it waits for."""

    def __init__(
        self,
        watch: Watch,
        watches: Watches,
        send: Send,
        leaving: asyncio.Task[Message],
        settle: Settle | None,
    ) -> None:
        self._watch = watch
        self._watches = watches
        self._send = send
        self._leaving = leaving
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._marking: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Send until the end, and say that it is the end if the client is still there."""
        ending = self._loop.call_later(self._watch.timeout_s, self._end)
        self._mark_later(0.0)
        self._watch.on_data = self._woken.set
        self._leaving.add_done_callback(lambda _: self._woken.set())
        try:
            while await self._send_lines():
                await self._woken.wait()
        finally:
            ending.cancel()
            if self._marking is not None:
                self._marking.cancel()
        if not self._leaving.done():
            await self._send({"type": "http.response.body", "body": b""})

    def _end(self) -> None:
        self._watch.end()

    def _mark_later(self, elapsed_s: float) -> None:
        wait_s = self._watch.bookmark_in_s(elapsed_s)
        if wait_s is not None:
            self._marking = self._loop.call_later(wait_s, self._mark, elapsed_s + wait_s)

    def _mark(self, elapsed_s: float) -> None:
        self._watch.bookmark(self._watches.version)
        self._mark_later(elapsed_s)

    async def _send_lines(self) -> bool:
        """Send what there is; whether there may be more."""
        self._woken.clear()
        is_over = self._watch.is_over
        lines = self._watch.take()
        if self._leaving.done():
            return False
        if lines and not await self._is_safe():
            return False
        if lines:
            for piece in chunks_of((b"".join(lines),)):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            if not is_over:
                await asyncio.sleep(SEND_INTERVAL_S)
        return not is_over

    async def _is_safe(self) -> bool:
        """Wait until what happened cannot be undone; False if it may be."""
        if self._settle is not None:
            try:
                await self._settle()
            except ApiError:
                return False
        return True
