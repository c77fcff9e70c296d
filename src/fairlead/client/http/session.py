"""HttpSession: an aiohttp session for streams and for requests through a proxy.

Importing aiohttp takes 0.1 s of CPU time, so RestClient imports this module only when it first
needs a proxy or a stream.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import aiohttp
from aiohttp_socks import (
    ProxyConnectionError,
    ProxyConnector,
    ProxyError,
    ProxyTimeoutError,
)
from yarl import URL

from fairlead.client.connection import ConnectionConfig
from fairlead.client.http.connection import HttpResponse, NewBodyLimit, UnreachableError

_FAILURES: Final = (
    *(aiohttp.ClientError, ProxyError, ProxyConnectionError, ProxyTimeoutError, OSError),
    EOFError,  # a SOCKS proxy closed the connection during the handshake
)
_SOCKS_PORT: Final = 1080  # upstream: net/http/transport.go: portMap
_TEXT_MAX: Final = 200


class HttpSession:
    """Connections to one server, directly or through a proxy; `close` closes them."""

    def __init__(
        self,
        config: ConnectionConfig,
        proxy: str,
        *,
        connections_max: int,
        seconds_max: tuple[float, float],
        new_limit: NewBodyLimit,
    ) -> None:
        """Prepare the session; `proxy` is the URL of the proxy, "" for none.

        The event loop must be running. `seconds_max` contains two limits: the time to connect, and
        the time without any byte of a response. If the body of a response is longer than the limit
        that `new_limit` returns, the request fails as if the connection had failed.
        """
        self._server = config.server
        self._new_limit = new_limit
        self._tls_server_name = config.tls_server_name or None
        is_socks = proxy.startswith(("socks5:", "socks5h:"))
        self._proxy = None if is_socks else proxy or None
        connect, read = seconds_max
        self._session = aiohttp.ClientSession(
            connector=_connector(proxy if is_socks else "", connections_max),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(
        self,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
        tls: ssl.SSLContext | None,
    ) -> HttpResponse:
        """Send a request for `target`, a path with its query, and return the response.

        `body` is None for a request without a body, and `tls` is None for plain HTTP. Raises
        UnreachableError or TimeoutError if the request fails.
        """
        async with self.open(method, target, headers, tls, body) as response:
            return HttpResponse(
                response.status,
                response.headers.get("Fairlead-Time", response.headers.get("Date", "")),
                response.headers.get("Retry-After", ""),
                await self._body(response),
            )

    @asynccontextmanager
    async def open(
        self,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        tls: ssl.SSLContext | None,
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; yield the response, whose body the `with` block reads.

        Raises UnreachableError or TimeoutError if the request fails, or if the body cannot be read
        in the `with` block.
        """
        options: Mapping[str, Any] = {
            "data": body,
            "headers": headers,
            "ssl": tls or False,
            "server_hostname": self._tls_server_name,
            "proxy": self._proxy,
            "allow_redirects": False,
        }
        # The target is encoded already; checking that takes a tenth of the time of a request.
        url = URL(self._server + target, encoded=True)
        with _failures():
            async with self._session.request(method, url, **options) as response:
                yield response

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        chunks, limit = [], self._new_limit()
        async for chunk in response.content.iter_any():
            limit.count(len(chunk))
            chunks.append(chunk)
        return b"".join(chunks)


def _connector(socks_proxy: str, connections_max: int) -> aiohttp.BaseConnector:
    if not socks_proxy:
        return aiohttp.TCPConnector(limit=connections_max)
    # The proxy resolves the names of servers, as with Go's net/http.
    url = URL(socks_proxy.replace("socks5h:", "socks5:", 1))
    url = url if url.port else url.with_port(_SOCKS_PORT)
    return ProxyConnector.from_url(str(url), limit=connections_max, rdns=True)


@contextmanager
def _failures() -> Iterator[None]:
    """Raise UnreachableError in place of an aiohttp exception that the `with` block raises."""
    try:
        yield
    except TimeoutError:
        raise
    except _FAILURES as cause:
        # upstream: client-go/rest/with_retry.go: retries of connection resets
        is_transient = isinstance(cause, aiohttp.ServerDisconnectedError | ConnectionResetError)
        raise UnreachableError(_reason(cause), is_transient=is_transient) from None


def _reason(cause: Exception) -> str:
    match cause:
        case aiohttp.ClientConnectorCertificateError():
            return f"the server's certificate is not trusted: {cause.certificate_error}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered with status {cause.status}"
        case aiohttp.ClientProxyConnectionError():
            return f"cannot connect to the proxy: {cause.strerror or cause}"
        case aiohttp.ClientConnectorError():
            return f"cannot connect: {cause.strerror or cause}"
        case EOFError():
            return "the proxy closed the connection"
        case _:
            shown = str(cause)[:_TEXT_MAX] or type(cause).__name__  # may quote the request
            return f"the connection failed: {shown}"
