"""Streams the events of a watch until it ends or the client disconnects.

The stream pauses after each send, so that the events of a busy watch are sent together. The pause
grows with the number of watches on the same kind of objects. One change can cause an event in all
these watches, and each send takes time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from fairlead.apiserver.endpoints.collection.watch import Watch, Watches
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.chunk import CHUNK_BYTES_MAX, chunks_of
from fairlead.apiserver.http.suspended_steps import run_steps

PAUSE_S_MIN: Final = 0.001
PAUSE_S_MAX: Final = 0.05
PAUSE_S_PER_WATCH: Final = 0.0001  # a send takes about this long
NO_CACHE: Final = (b"cache-control", b"no-cache, private")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
WaitUntilDurable = Callable[[], Awaitable[None]]
# Returns the bytes to send for encoded events.
Frame = Callable[[Iterable[bytes]], bytes]


async def stream(
    watch: Watch,
    watches: Watches,
    receive: Receive,
    send: Send,
    wait_until_durable: WaitUntilDurable | None = None,
    frame: Frame = b"".join,
) -> None:
    """Send the events of `watch` until it ends or the client disconnects.

    `wait_until_durable` is awaited before events are sent, because a crash could undo changes that
    are not durable. If `wait_until_durable` raises ApiError, the watch ends. `frame` returns the
    bytes to send for some events; each event is one line.
    """
    headers = [NO_CACHE, (b"content-type", watch.content_type.encode())]
    disconnect: asyncio.Task[Message] | None = None
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        disconnect = asyncio.ensure_future(_disconnected(receive))
        await _Stream(watch, watches, send, disconnect, wait_until_durable, frame).run()
    finally:
        watch.on_data = None
        watch.close()
        if disconnect is not None:
            disconnect.cancel()


async def _disconnected(receive: Receive) -> Message:
    """Wait until the client disconnects."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message


class _Stream:
    """Streams one watch to one client.

    `_woken` is set when there may be work, and `_over` when the watch ends.
    """

    def __init__(
        self,
        watch: Watch,
        watches: Watches,
        send: Send,
        disconnect: asyncio.Task[Message],
        wait_until_durable: WaitUntilDurable | None,
        frame: Frame,
    ) -> None:
        self._watch = watch
        self._frame = frame
        self._watches = watches
        self._send = send
        self._disconnect = disconnect
        self._wait_until_durable = wait_until_durable
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._over = asyncio.Event()
        self._bookmark_timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Send events until the watch ends.

        Then finish the response if the client is still connected.
        """
        ending = self._loop.call_later(self._watch.timeout_s, self._end)
        self._schedule_bookmark(0.0)
        self._watch.on_data = self._wake
        self._disconnect.add_done_callback(lambda _: self._woken.set())
        try:
            while await self._send_lines():
                await self._woken.wait()
        finally:
            ending.cancel()
            if self._bookmark_timer is not None:
                self._bookmark_timer.cancel()
        if not self._disconnect.done():
            await self._send({"type": "http.response.body", "body": b""})

    def _end(self) -> None:
        self._watch.close()

    def _schedule_bookmark(self, elapsed_s: float) -> None:
        wait_s = self._watch.bookmark_in_s(elapsed_s)
        if wait_s is not None:
            self._bookmark_timer = self._loop.call_later(wait_s, self._bookmark, elapsed_s + wait_s)

    def _bookmark(self, elapsed_s: float) -> None:
        self._watch.bookmark(self._watches.version)
        self._schedule_bookmark(elapsed_s)

    async def _send_lines(self) -> bool:
        """Send the queued events; return whether more events can follow.

        To save memory, the stream takes one chunk at a time from the queue. The queues of all
        watches share the bytes of an event, but each chunk contains a copy of these bytes.
        """
        self._woken.clear()
        if self._watch.has_waiting:
            await self._convert_waiting()
        is_over = self._watch.is_over
        while not self._disconnect.done():
            text = self._frame(self._watch.pop_lines(CHUNK_BYTES_MAX))
            if not text:
                return not is_over
            if not await self._is_durable():
                return False
            for chunk in chunks_of((text,)):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            if self._watch.is_drained:
                if not is_over:
                    await asyncio.sleep(self._pause_s())
                return not is_over
        return False

    async def _convert_waiting(self) -> None:
        """Let a webhook convert waiting changes, until the watch ends or the client disconnects."""
        converting = asyncio.ensure_future(run_steps(self._watch.convert_waiting()))
        over = asyncio.ensure_future(self._over.wait())
        try:
            ends = (converting, over, self._disconnect)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            converting.cancel()
            (failed,) = await asyncio.gather(converting, return_exceptions=True)
        if isinstance(failed, Exception):
            raise failed
        if self._watch.has_waiting:
            self._woken.set()

    def _wake(self) -> None:
        self._woken.set()
        if self._watch.is_over:
            self._over.set()

    def _pause_s(self) -> float:
        """Return how many seconds to collect events before they are sent together."""
        watches = self._watches.count(self._watch.scope.kind)
        return min(PAUSE_S_MAX, max(PAUSE_S_MIN, PAUSE_S_PER_WATCH * watches))

    async def _is_durable(self) -> bool:
        """Wait until all changes so far are durable; return False after an ApiError."""
        if self._wait_until_durable is not None:
            try:
                await self._wait_until_durable()
            except ApiError:
                return False
        return True
