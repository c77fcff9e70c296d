"""TimeoutHttpProtocol: HTTP with clients that are in time, and no longer than they should be.

uvicorn ends connections on which nothing begins. Here those end too whose request line and headers
do not come to their end in time, or grow beyond all measure, those whose client does not read its
answer, and those whose client sends on though its request was refused.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.apiserver.http.coalescing_transport import CoalescingTransport
from fairlead.apiserver.http.peer_certificate import PEER, peer_of

HEAD_SECONDS_MAX: Final = 10.0
HEAD_BYTES_MAX: Final = 64 << 10
READING_SECONDS_MAX: Final = 30.0
LINGER_SECONDS_MAX: Final = 1.0  # for a refusal to arrive before the connection is cut
IDLE_SECONDS_MAX: Final = 120  # longer than Go's clients keep theirs (90 s)


def uvicorn_config(app: Any, **more: Any) -> uvicorn.Config:
    """How uvicorn is to serve `app` (ASGI) to such clients, HTTP alone; `more` as it has it.

    It writes no logs, tells nobody who it is, and believes no headers of proxies.
    """
    return uvicorn.Config(
        app,
        http=TimeoutHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        **more,
    )


class TimeoutHttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As uvicorn makes it."""
        super().__init__(*arguments, **options)
        self._head = _Deadline()
        self._reading = _Deadline()
        self._linger = _Deadline()
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has called, and should say what for."""
        super().connection_made(transport)  # type: ignore[arg-type] # uvicorn narrows it
        peer = peer_of(transport)
        if peer is not None:
            self.app_state = {**self.app_state, PEER: peer}  # of this connection alone
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """More of a request, or of several."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and not self._head.is_set:
            self._expect_head()
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head.is_set and self._head_bytes > HEAD_BYTES_MAX:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Another request begins."""
        super().on_message_begin()
        if not self._head.is_set:  # nor did what came first tell of it
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Only the body is due now, which is the application's part."""
        self._head.clear()
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":
            self.cycle.transport = CoalescingTransport(self.transport)

    def on_response_complete(self) -> None:
        """The answer has left; the end of its request may never come."""
        super().on_response_complete()
        if self.transport.is_closing() and self.cycle.more_body:
            self._linger.set(self.loop, LINGER_SECONDS_MAX, self.transport)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._reading.set(self.loop, READING_SECONDS_MAX, self.transport)

    def resume_writing(self) -> None:
        """It does again."""
        self._reading.clear()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._head.clear()
        self._reading.clear()
        self._linger.clear()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head.set(self.loop, HEAD_SECONDS_MAX, self.transport)


class _Deadline:
    """When a connection is given up."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def set(
        self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport
    ) -> None:
        self.clear()
        self._timer = loop.call_later(seconds, transport.abort)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
