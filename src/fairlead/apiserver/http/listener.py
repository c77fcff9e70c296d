"""Listener: an ApiApp on a socket, in a running event loop.

upstream: apiserver/pkg/server/secure_serving.go
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import Final

import uvicorn

from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.http.connection_timeouts import uvicorn_config

GRACE_SECONDS: Final = 3
BACKLOG: Final = 2_048


@dataclass(frozen=True, slots=True)
class Certificate:
    """Where the server's certificate chain and its key are.

    Clients may show certificates of the authority in `clients_file`, "" for none.
    """

    chain_file: str
    key_file: str
    clients_file: str = ""


def _asking(certificate: Certificate | None) -> int:
    """Whether clients are asked for certificates."""
    is_asking = certificate is not None and certificate.clients_file
    return ssl.CERT_OPTIONAL if is_asking else ssl.CERT_NONE


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the loop."""

    def install_signal_handlers(self) -> None:
        """Nothing to install."""


class Listener:
    """Serves `app` on a socket that listens already; TLS with a `certificate`."""

    def __init__(self, app: ApiApp, listening: socket, certificate: Certificate | None) -> None:
        """Nothing happens before `start`."""
        config = uvicorn_config(
            app,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=certificate.chain_file if certificate else None,
            ssl_keyfile=certificate.key_file if certificate else None,
            ssl_ca_certs=(certificate.clients_file or None) if certificate else None,
            ssl_cert_reqs=_asking(certificate),
        )
        # Sockets inherit it. An answer leaves as head and body: without it the body would wait
        # until the client's kernel acknowledges the head, which takes it 40 ms.
        listening.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        self._app = app
        self._listening = listening
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to accept; comes back when connections are."""
        config = self._server.config
        if not config.loaded:
            config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup([self._listening])
        self._task = asyncio.create_task(self._server.main_loop())

    async def stop(self) -> None:
        """End the watches in good order, finish what is under way, hang up."""
        self._app.close()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
            await self._server.shutdown([self._listening])
            await self._hang_up()

    async def _hang_up(self) -> None:
        """End what clients still hold open: a closing handshake of TLS may wait for them long."""
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        # Transports close their sockets when the loop comes round, those of TLS one turn later.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
