"""Listener: serves an application on a socket, in a running event loop.

upstream: apiserver/pkg/server/secure_serving.go
"""

from __future__ import annotations

import asyncio
import ssl
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import Final, Protocol

import uvicorn
from msgspec import Struct

from fairlead.apiserver.http.app import Message, Receive, Send
from fairlead.apiserver.http.connection_timeouts import uvicorn_config

GRACE_SECONDS: Final = 3
BACKLOG: Final = 2_048
_NO_CHECK_TIME: Final = ssl.VerifyFlags(0x200000)  # openssl/x509_vfy.h:X509_V_FLAG_NO_CHECK_TIME


class ServedApp(Protocol):
    """An ASGI application with streams that can be ended."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
        ...

    def close(self) -> None:
        """End all streams before the server stops."""
        ...


class Certificate(Struct, frozen=True):
    """The files of the server's certificate chain and key.

    Client certificates must be signed by the authority in `clients_file`. If `clients_file` is "",
    the server requests no client certificates.
    """

    chain_file: str
    key_file: str
    clients_file: str = ""


def _client_certificates(certificate: Certificate | None) -> int:
    """Return the `ssl` verify mode: CERT_OPTIONAL to request client certificates, or CERT_NONE."""
    is_requested = certificate is not None and certificate.clients_file
    return ssl.CERT_OPTIONAL if is_requested else ssl.CERT_NONE


class Listener:
    """Serves `app` on a listening socket; with a `certificate`, over TLS."""

    def __init__(self, app: ServedApp, listening: socket, certificate: Certificate | None) -> None:
        """Configure the server; `start` begins to accept connections."""
        config = uvicorn_config(
            app,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=certificate.chain_file if certificate else None,
            ssl_keyfile=certificate.key_file if certificate else None,
            ssl_ca_certs=(certificate.clients_file or None) if certificate else None,
            ssl_cert_reqs=_client_certificates(certificate),
        )
        # Connections inherit TCP_NODELAY. Without it, later parts of a response would wait for
        # the client's delayed ACK, which takes 40 ms.
        listening.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        self._app = app
        self._listening = listening
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to accept connections; return when the server is ready."""
        config = self._server.config
        if not config.loaded:
            config.load()
        if config.ssl is not None:
            # TLS would compare the expiry with the machine's clock; `ApiApp` uses the cluster's.
            config.ssl.verify_flags |= _NO_CHECK_TIME
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup([self._listening])
        self._task = asyncio.create_task(self._update_date_header())

    async def stop(self) -> None:
        """End the watches, finish open requests, and close all connections."""
        self._app.close()
        if self._task is not None:
            self._task.cancel()
            await self._server.shutdown([self._listening])
            await self._abort_connections()

    async def _update_date_header(self) -> None:
        """Update the Date header of responses every second.

        This loop replaces uvicorn's `main_loop`, which checks ten times a second whether to exit.
        """
        while True:
            await self._server.on_tick(0)
            await asyncio.sleep(1)

    async def _abort_connections(self) -> None:
        """Abort connections that clients keep open.

        The connections are aborted instead of closed, because closing a TLS connection waits for
        the client's reply.
        """
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        # Sockets are closed in the next iteration of the event loop, and TLS sockets one iteration
        # later.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
