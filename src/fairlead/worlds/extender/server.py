"""Serves an extender on a socket until SIGINT or SIGTERM.

Requests are handled one at a time, because the backend's state must have a single writer. They are
handled in the order in which their bodies are complete.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import socket
from types import FrameType
from typing import Final

import uvicorn
import uvloop

from fairlead.apiserver.http.connection_timeouts import uvicorn_config
from fairlead.worlds.extender.address import Address
from fairlead.worlds.extender.api_binding import ApiBinding, refuse_to_bind
from fairlead.worlds.extender.app import ExtenderApp, Verb
from fairlead.worlds.extender.extender_verbs import ExtenderVerbs, VerbFunction

CONNECTIONS_MAX: Final = 64
GRACE_SECONDS: Final = 5


class _Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` when it accepts connections.

    The first signal stops the server gracefully. The second signal stops the server immediately.
    """

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start to accept connections, then call `on_ready`."""
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server on a signal; unlike uvicorn, do not raise the signal again later."""
        self.force_exit = self.should_exit
        self.should_exit = True


def make_server(app: ExtenderApp, on_ready: Callable[[], None]) -> uvicorn.Server:
    """Return a server for `app`; the server calls `on_ready` when it accepts connections."""
    config = uvicorn_config(
        app, limit_concurrency=CONNECTIONS_MAX, timeout_graceful_shutdown=GRACE_SECONDS
    )
    return _Server(config, on_ready)


def serve_extender(
    verbs: ExtenderVerbs,
    address: Address,
    listening: socket,
    *,
    api_server: str = "",
    on_ready: Callable[[], None],
) -> None:
    """Serve an extender until SIGINT or SIGTERM.

    Pods are bound through the API server at the URL `api_server`. If `api_server` is empty, bind
    requests are rejected.
    """

    async def serve() -> None:
        async with _binding(api_server) as bind:
            by_verb = {name: _at_once(function) for name, function in verbs.by_verb.items()}
            app = ExtenderApp({**by_verb, "bind": bind}, address.names)
            await make_server(app, on_ready).serve([listening])

    # uvloop warns of every write to a connection that a client has closed.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    uvloop.run(serve())


@asynccontextmanager
async def _binding(api_server: str) -> AsyncIterator[Verb]:
    if not api_server:
        yield refuse_to_bind
        return
    async with ApiBinding(api_server) as binding:
        yield binding.bind


def _at_once(function: VerbFunction) -> Callable[[bytes], Awaitable[bytes]]:
    async def verb(body: bytes) -> bytes:
        return function(body)

    return verb
