"""RestClient: sends requests to one API server.

`get` and `post` repeat a request if the server is overloaded (429 or 503, with Retry-After). `get`
also repeats it if an open connection is closed before a response. `exchange` sends a request once,
and its caller handles the response; `begin` does the same without a task. `get`, `post` and
`exchange` repeat a request once after status 401, if the credentials can be renewed.

upstream: client-go/rest/{request,with_retry}.go
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from aiohttp_socks import ProxyConnector, ProxyError
from msgspec import Struct
from yarl import URL

from fairlead import __version__
from fairlead.client.connection import ConnectionConfig, tls_context
from fairlead.client.credentials import Credentials
from fairlead.client.error import RequestError
from fairlead.client.http_pool import IDEMPOTENT, HttpPool, HttpResponse, UnreachableError

CONNECTIONS_MAX: Final = 16
TRIES_MAX: Final = 10  # upstream: rest/request.go:NewRequest
CONNECT_SECONDS_MAX: Final = 30
READ_SECONDS_MAX: Final = 120
RETRY_SECONDS_MAX: Final = 30.0
USER_AGENT: Final = f"fairlead/{__version__}"
# After a read of less than _FEW_LINES lines of a stream, the next read is this much later, so that
# it returns several lines at once, which costs less CPU than a read for each.
READ_GAP_S: Final = 0.002
_FEW_LINES: Final = 16
LINE_BYTES_MAX: Final = 64 << 20
_UNAUTHORIZED: Final = 401
_OVERLOADED: Final = (429, 503)
_FAILURES: Final = (
    *(aiohttp.ClientError, ProxyError, TimeoutError, OSError, UnreachableError),
    EOFError,  # a SOCKS proxy closed the connection during the handshake
)
_TEXT_MAX: Final = 200


class _Status(Struct):
    """The fields of a Status that explain why a request failed."""

    message: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; `content_type` is the content type of `body`."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """The response to a request; status 0 means no response, and `message` is the reason.

    The server may have performed a request to which it did not respond. `retry_after_s` is 0 if
    there is no Retry-After header. `reason` and `message` come from the Status in the response.
    """

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0
    reason: str = ""
    message: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the server performed the request."""
        return 200 <= self.status < 300


# Called with the response to a request. None means that the request was not performed because the
# credentials were rejected: `exchange` can send it again.
OnAnswer = Callable[[ApiAnswer | None], None]
# Called when a request begins; it returns a function that is called with the response.
RequestObserver = Callable[[ApiRequest], Callable[[ApiAnswer], None]]


class RestClient:
    """A client of the server in `config`; an async context manager."""

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        read_seconds_max: float = READ_SECONDS_MAX,
        connections_max: int = CONNECTIONS_MAX,
        bytes_max: int | None = None,
        observe: RequestObserver | None = None,
    ) -> None:
        """Prepare the client; connections are opened with the first request.

        `observe` is called with each request of `exchange`; it returns a function that is called
        with the response.

        A response of more than `bytes_max` bytes counts as a failed connection. None sets no limit;
        use it only for API servers.
        """
        self.config = config
        self._connections_max = connections_max
        self._bytes_max = bytes_max
        self._observe = observe
        self._read_seconds_max = read_seconds_max
        self.date = ""  # from the latest response's Date header
        # Credentials expire in real time, in every world.
        self._credentials = Credentials(config, time.time)  # noqa: TID251
        self._tls: ssl.SSLContext | None = None
        self._certificate = ("", "")
        self._proxy = config.proxy_url or _system_proxy(config.server)
        self._session: aiohttp.ClientSession | None = None
        self._pool = None if self._proxy else self._new_pool()
        # by content type, the headers of writes, as pairs and as bytes
        self._heads: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def _new_pool(self) -> HttpPool:
        return HttpPool(
            self.config.server,
            connections_max=self._connections_max,
            connect_seconds_max=CONNECT_SECONDS_MAX,
            tls_server_name=self.config.tls_server_name,
            bytes_max=self._bytes_max,
        )

    async def __aenter__(self) -> Self:
        """Open the HTTP session; return the client."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=self._read_seconds_max
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector(),
            timeout=timeout,
            headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        if self._pool is not None:
            self._pool.close()
        if self._session is not None:
            await self._session.close()

    def _connector(self) -> aiohttp.TCPConnector:
        if not self._is_socks:
            return aiohttp.TCPConnector(limit=self._connections_max)
        # The proxy resolves the names of servers, as with Go's net/http.
        url = self._proxy.replace("socks5h:", "socks5:", 1)
        return ProxyConnector.from_url(url, limit=self._connections_max, rdns=True)

    @property
    def _is_socks(self) -> bool:
        return self._proxy.startswith(("socks5:", "socks5h:"))

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Return the body of a GET. Raises RequestError, ConnectionConfigError."""
        return await self._request("GET", path, query, None)

    async def post(self, path: str, body: bytes) -> bytes:
        """Return the body of the response to a POST of JSON.

        After a connection failure the request is not repeated, because it may have been performed.
        Raises RequestError, ConnectionConfigError.
        """
        return await self._request("POST", path, None, body)

    async def exchange(self, request: ApiRequest, seconds_max: float) -> ApiAnswer:
        """Send a request once and return its response.

        The status is 0 if the connection fails, or if `seconds_max` pass without a response. The
        request is repeated after 401, if the credentials can be renewed. A PUT or DELETE is also
        repeated if an idle connection was closed. Raises ConnectionConfigError.
        """
        if self._observe is None:
            return await self._exchange(request, seconds_max)
        end = self._observe(request)
        answer = await self._exchange(request, seconds_max)
        end(answer)
        return answer

    async def _exchange(self, request: ApiRequest, seconds_max: float) -> ApiAnswer:
        is_renewed = False
        while True:
            try:
                response = await self._response(request, seconds_max)
            except _FAILURES as cause:
                return ApiAnswer(0, message=self._unreachable(cause).message)
            if response.status == _UNAUTHORIZED and not is_renewed and self._credentials.renew():
                is_renewed = True
                continue
            return self._answer(response)

    def begin(self, request: ApiRequest, seconds_max: float, on_answer: OnAnswer) -> bool:
        """Send a request once, as `exchange` does; `on_answer` is called with the response later.

        Returns False, and sends nothing, if no connection is idle, or if the client has a proxy or
        an observer. It does so also for a request without a body or with a query, and for PUT and
        DELETE. Use `exchange` then. Raises ConnectionConfigError.
        """
        pool = self._pool
        if pool is None or request.body is None or request.query or self._observe is not None:
            return False
        if request.method in IDEMPOTENT:  # may have to be repeated
            return False

        def end(response: HttpResponse | Exception) -> None:
            if isinstance(response, Exception):
                on_answer(ApiAnswer(0, message=self._unreachable(response).message))
            elif response.status == _UNAUTHORIZED:
                on_answer(None)
            else:
                self.date = response.date or self.date
                on_answer(self._answer(response))

        head = self._write_head(pool, request.content_type)
        sent = pool.encode(request.method, request.path, head, request.body)
        return pool.begin(sent, tls=self._tls_context(), seconds_max=seconds_max, on_end=end)

    def _answer(self, response: HttpResponse) -> ApiAnswer:
        status, body = response.status, response.body
        if status < 300:
            return ApiAnswer(status, body)
        refusal = self._refused(status, body)
        pause = response.retry_after
        seconds = float(pause) if pause.isdecimal() else 0.0
        return ApiAnswer(status, body, seconds, refusal.reason, refusal.message)

    async def _response(self, request: ApiRequest, seconds_max: float) -> HttpResponse:
        """Send a request once: by the pool if it has a body but no query, else by aiohttp."""
        if request.body is None or request.query or self._pool is None:
            async with asyncio.timeout(seconds_max):
                return await self._send(
                    request.method, request.path, request.query, request.body, request.content_type
                )
        response = await self._pool.send(
            request.method,
            request.path,
            self._write_head(self._pool, request.content_type),
            request.body,
            tls=self._tls_context(),
            seconds_max=seconds_max,
        )
        self.date = response.date or self.date
        return response

    def _write_head(self, pool: HttpPool, content_type: str) -> bytes:
        headers = self._credentials.headers()
        known = self._heads.get(content_type)
        if known is None or known[0] is not headers:
            common = [("User-Agent", USER_AGENT), ("Accept", "application/json")]
            lines = pool.head([*common, *headers, ("Content-Type", content_type)])
            known = self._heads[content_type] = headers, lines
        return known[1]

    async def stream(
        self, path: str, query: Mapping[str, str], seconds_max: float
    ) -> AsyncGenerator[list[bytes]]:
        """Yield the complete lines of a response as they arrive, for at most `seconds_max`.

        An incomplete last line is dropped. Raises RequestError if the request is refused, the
        connection breaks or the time is over. Raises ConnectionConfigError.
        """
        assert self._session is not None, "use `async with`"
        rest = b""
        try:
            async with (
                asyncio.timeout(seconds_max),
                self._session.request("GET", self.config.server + path, **self._options(query)) as (
                    response
                ),
            ):
                if response.status >= 300:
                    if response.status == _UNAUTHORIZED:
                        self._credentials.renew()
                    raise self._refused(response.status, await response.read())
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if len(rest) > LINE_BYTES_MAX:
                        raise RequestError(self.config.server, 0, "", "a line is too long")
                    if lines:
                        yield lines
                    # A stream that never pauses must not block others.
                    await asyncio.sleep(READ_GAP_S if len(lines) < _FEW_LINES else 0)
        except _FAILURES as cause:
            raise self._unreachable(cause) from None

    def _options(self, query: Mapping[str, str] | None, content_type: str = "") -> dict[str, Any]:
        more = [("Content-Type", content_type)] if content_type else []
        return {
            "params": query,
            "headers": [*self._credentials.headers(), *more],
            "ssl": self._tls_context() or False,
            "server_hostname": self.config.tls_server_name or None,
            "proxy": None if self._is_socks else self._proxy or None,
            "allow_redirects": False,
        }

    async def _request(
        self, method: str, path: str, query: Mapping[str, str] | None, content: bytes | None
    ) -> bytes:
        is_renewed = False
        for number in range(1, TRIES_MAX + 1):
            try:
                response = await self._send(method, path, query, content)
            except _FAILURES as cause:
                may_repeat = method == "GET" and _is_transient(cause)
                if number == TRIES_MAX or not may_repeat:
                    raise self._unreachable(cause) from None
                await asyncio.sleep(_pause_s("", number))
                continue
            status, body = response.status, response.body
            if status < 300:
                return body
            if status == _UNAUTHORIZED and not is_renewed and self._credentials.renew():
                is_renewed = True
                continue
            retry_after = response.retry_after
            if status in _OVERLOADED and retry_after and number < TRIES_MAX:
                await asyncio.sleep(_pause_s(retry_after, number))
                continue
            raise self._refused(status, body)
        raise AssertionError("the last try returns or raises")

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str = "application/json",
    ) -> HttpResponse:
        assert self._session is not None, "use `async with`"
        options = self._options(query, "" if content is None else content_type)
        # Paths consist of names, which need no encoding; checking that takes a tenth of a request.
        url = URL(self.config.server + path, encoded=True)
        async with self._session.request(method, url, data=content, **options) as response:
            self.date = response.headers.get("Date", self.date)
            retry_after = response.headers.get("Retry-After", "")
            return HttpResponse(response.status, self.date, retry_after, await self._body(response))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if self._bytes_max is None:
            return await response.read()
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._bytes_max:
                problem = f"the answer has more than {self._bytes_max >> 20} MiB"
                raise aiohttp.ClientPayloadError(problem)
        return bytes(body)

    def _tls_context(self) -> ssl.SSLContext | None:
        certificate = self._credentials.certificate()
        if self._tls is None or certificate != self._certificate:
            self._tls = tls_context(self.config, *certificate)
            self._certificate = certificate
        return self._tls

    def _refused(self, code: int, body: bytes) -> RequestError:
        try:
            status = msgspec.json.decode(body, type=_Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = " ".join(body[:_TEXT_MAX].decode(errors="replace").split())
            status = _Status(message=text)
        message = status.message or f"the server answered with status {code}"
        return RequestError(self.config.server, code, status.reason, message)

    def _unreachable(self, cause: Exception) -> RequestError:
        match cause:
            case aiohttp.ClientConnectorCertificateError():
                text = f"the server's certificate is not trusted: {cause.certificate_error}"
            case aiohttp.ClientConnectorError():
                text = f"cannot connect: {cause.strerror or cause}"
            case UnreachableError():
                text = str(cause)
            case TimeoutError():
                text = "the server did not answer in time"
            case EOFError():
                text = "the proxy closed the connection"
            case _:
                shown = str(cause)[:_TEXT_MAX] or type(cause).__name__  # may quote the request
                text = f"the connection failed: {shown}"
        return RequestError(self.config.server, 0, "", " ".join(text.split()))


def _is_transient(cause: Exception) -> bool:
    """Return whether another try may succeed, because an established connection was closed."""
    # upstream: client-go/rest/with_retry.go: retries of connection resets
    return isinstance(cause, aiohttp.ServerDisconnectedError | ConnectionResetError)


def _pause_s(retry_after: str, number: int) -> float:
    """Return the seconds to wait between try `number` and the next try."""
    asked = float(retry_after) if retry_after.isdecimal() else 0.1 * 2**number
    return min(asked, RETRY_SECONDS_MAX)


def _system_proxy(server: str) -> str:
    """Return the URL of the environment's proxy for `server`, "" if there is none."""
    parts = urlsplit(server)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return ""
    # upstream: golang.org/x/net/http/httpproxy: never for this machine
    if parts.hostname == "localhost" or parts.hostname.startswith("127."):
        return ""
    return getproxies().get(parts.scheme, "")
