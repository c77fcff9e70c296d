"""RestClient: sends requests to one API server.

`get` and `post` repeat a request if the server is overloaded (429 or 503, with Retry-After). `get`
also repeats the request if an open connection is closed before a response begins. `exchange`
returns every response, and its caller decides whether to try again. `begin` does not wait for the
response, but passes it to a function. `get`, `post` and `exchange` repeat a request once after
status 401, if the credentials can be renewed.

upstream: client-go/rest/{request,with_retry}.go
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from fairlead import __version__
from fairlead.client.connection import ConnectionConfig, require_proxy, tls_context
from fairlead.client.credentials import Credentials, TlsTexts
from fairlead.client.error import (
    TIMED_OUT,
    TOO_LONG,
    UNDECODABLE,
    ConnectionConfigError,
    RequestError,
)
from fairlead.client.http.connection import (
    BodyLimit,
    HttpResponse,
    TooLongAnswerError,
    UnreachableError,
)
from fairlead.client.http.pool import IDEMPOTENT, HttpPool

if TYPE_CHECKING:
    from aiohttp import StreamReader

    from fairlead.client.http.session import HttpSession

CONNECTIONS_MAX: Final = 16
RESPONSE_BYTES_MAX: Final = 2 << 30
TRIES_MAX: Final = 10  # upstream: rest/request.go:NewRequest
CONNECT_SECONDS_MAX: Final = 30
READ_SECONDS_MAX: Final = 120
RETRY_SECONDS_MAX: Final = 30.0
# The longest pause before a repetition if the server does not demand a pause. upstream:
# client-go/rest/with_retry.go: retryAfterResponse
PAUSE_SECONDS_MAX: Final = 1.0
USER_AGENT: Final = f"fairlead/{__version__}"
# After a read of fewer than _FEW_LINES lines of a stream, the next read is this much later. It then
# returns several lines, which costs less CPU time than a read for each line.
READ_GAP_S: Final = 0.002
_FEW_LINES: Final = 16
LINE_BYTES_MAX: Final = 64 << 20
_REFUSAL_BYTES_MAX: Final = 1 << 20
_UNAUTHORIZED: Final = 401
_OVERLOADED: Final = (429, 503)
_FAILURES: Final = (UnreachableError, TimeoutError, OSError)
_TEXT_MAX: Final = 200
_MESSAGE_MAX: Final = 1_000

_Headers = list[tuple[str, str]]


class _Status(Struct):
    """The fields of a Status that explain why a request failed."""

    message: str = ""
    reason: str = ""


class ApiRequest(Struct, frozen=True):
    """A request to the API server; `content_type` is the content type of `body`."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] | None = None


class ApiAnswer(Struct, frozen=True):
    """The response to a request.

    `status` is the HTTP status. If `status` is 0, no complete response arrived: `message` says why,
    and the server may have performed the request. `reason` and `message` come from the Status in
    the response to a failed request. `retry_after_s` is the number of seconds in the Retry-After
    header, at most RETRY_SECONDS_MAX; 0 if there is no such number.
    """

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0
    reason: str = ""
    message: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


# A function that is called with the response to a request. It is called with None if the server
# rejected the credentials and did not perform the request. `exchange` can then send the request
# again.
OnAnswer = Callable[[ApiAnswer | None], None]
# A function that is called when a request begins. It returns a function that is called with the
# response.
RequestObserver = Callable[[ApiRequest], Callable[[ApiAnswer], None]]


class RestClient:
    """A client of the server in `config`; an async context manager."""

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        read_seconds_max: float = READ_SECONDS_MAX,
        connections_max: int = CONNECTIONS_MAX,
        bytes_max: int | BodyLimit = RESPONSE_BYTES_MAX,
        credentials: Credentials | None = None,
        observe: RequestObserver | None = None,
    ) -> None:
        """Prepare the client; connections are opened with the first request.

        `observe` is called with each request that is passed to `exchange`. `observe` returns a
        function, which is then called with the response to this request.

        If the body of a response has more than `bytes_max` bytes, the request fails as if the
        connection had failed. If `bytes_max` is a BodyLimit, it limits the bodies of all responses
        together. A request of `get` or `post` fails if no byte of its response arrives for
        `read_seconds_max` seconds. Several clients of a server may share `credentials`, so that an
        exec plugin runs once for all of them.
        """
        self.config = config
        self._connections_max = connections_max

        def new_limit() -> BodyLimit:
            return BodyLimit(bytes_max) if isinstance(bytes_max, int) else bytes_max

        self._new_limit = new_limit
        self._observe = observe
        self._read_seconds_max = read_seconds_max
        self.date = ""  # `date` of the latest response, except those of streams
        self._credentials = _credentials(config) if credentials is None else credentials
        self._tls: ssl.SSLContext | None = None
        self._tls_texts: TlsTexts | None = None
        self._proxy = config.proxy_url or _system_proxy(config.server)
        self._session: HttpSession | None = None  # made with the first request that needs it
        self._pool = None if self._proxy else self._new_pool()
        # the headers of requests, as pairs and as bytes, keyed by content type
        self._heads: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def _new_pool(self) -> HttpPool:
        return HttpPool(
            self.config.server,
            connections_max=self._connections_max,
            connect_seconds_max=CONNECT_SECONDS_MAX,
            read_seconds_max=self._read_seconds_max,
            new_limit=self._new_limit,
            tls_server_name=self.config.tls_server_name,
        )

    async def __aenter__(self) -> Self:
        """Return the client."""
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
            # The event loop closes aborted transports in its next iteration.
            await asyncio.sleep(0)
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> HttpSession:
        if self._session is None:
            from fairlead.client.http.session import HttpSession  # noqa: PLC0415 - loads aiohttp

            timeout = CONNECT_SECONDS_MAX, self._read_seconds_max
            self._session = HttpSession(
                self.config,
                self._proxy,
                connections_max=self._connections_max,
                seconds_max=timeout,
                new_limit=self._new_limit,
            )
        return self._session

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Send a GET and return the body of the response.

        Raises RequestError if the request fails, and ConnectionConfigError if the credentials or
        TLS settings cannot be used.
        """
        return await self._request(ApiRequest("GET", path, query=query))

    async def post(self, path: str, body: bytes) -> bytes:
        """Send the JSON text `body` with POST and return the body of the response.

        After a connection failure the request is not repeated, because it may have been performed.
        Raises RequestError if the request fails, and ConnectionConfigError if the credentials or
        TLS settings cannot be used.
        """
        return await self._request(ApiRequest("POST", path, body))

    async def exchange(self, request: ApiRequest, seconds_max: float) -> ApiAnswer:
        """Send a request and return its response, whatever the status.

        The status is 0 if the connection fails, or if no response arrives within `seconds_max`. The
        request is repeated in two cases only. After status 401, any request is repeated once if the
        credentials can be renewed. A GET, PUT or DELETE is also repeated if it used an open
        connection that was closed before a response began. Raises ConnectionConfigError if the
        credentials or TLS settings cannot be used.
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
                response, sent = await self._send(request, seconds_max)
            except _FAILURES as cause:
                return self._no_answer(cause)
            if response.status == _UNAUTHORIZED and not is_renewed:
                is_renewed = True
                if self._credentials.renew(sent):
                    continue
            return self._answer(response)

    def begin(self, request: ApiRequest, seconds_max: float, on_answer: OnAnswer) -> bool:
        """Send a request without waiting; `on_answer` is called later with the response.

        If the status is 401, `on_answer` is called with None instead. The caller can then send the
        request with `exchange`, which tries to renew the credentials.

        Returns True if the request was sent. Returns False if sending it requires waiting, for
        example for an idle connection. Also returns False for requests that only `exchange` can
        send, such as a GET or PUT. After False, the caller must call `exchange`.

        Raises ConnectionConfigError if the credentials or TLS settings cannot be used.
        """
        pool = self._pool
        if (
            pool is None
            or not self._credentials.prepare()
            or request.body is None
            or request.query
            or self._observe is not None
        ):
            return False
        if request.method in IDEMPOTENT:  # only `exchange` can repeat the request
            return False

        def end(response: HttpResponse | Exception) -> None:
            if isinstance(response, Exception):
                on_answer(self._no_answer(response))
            elif response.status == _UNAUTHORIZED:
                on_answer(None)
            else:
                self.date = response.date or self.date
                on_answer(self._answer(response))

        head = self._head(pool, request)
        sent = pool.encode(request.method, request.path, head, request.body)
        return pool.begin(sent, tls=self._tls_context(), seconds_max=seconds_max, on_end=end)

    def _no_answer(self, cause: Exception) -> ApiAnswer:
        failure = self._unreachable(cause)
        return ApiAnswer(0, reason=failure.reason, message=failure.message)

    def _answer(self, response: HttpResponse) -> ApiAnswer:
        status, body = response.status, response.body
        if status < 300:
            return ApiAnswer(status, body)
        refusal = self._refused(status, body, response.retry_after)
        seconds = refusal.retry_after_s
        return ApiAnswer(status, body, seconds, refusal.reason, refusal.message)

    async def _send(
        self, request: ApiRequest, seconds_max: float | None = None
    ) -> tuple[HttpResponse, _Headers]:
        """Send a request once; return (response, headers).

        `headers` is the list that `Credentials.headers` returned; `Credentials.renew` needs it. If
        `seconds_max` is None, the request fails when no byte has arrived for the client's
        `read_seconds_max` seconds. Raises UnreachableError or TimeoutError if the request fails.
        Raises ConnectionConfigError if the credentials or TLS settings cannot be used.
        """
        if not self._credentials.prepare():
            seconds_max = await self._wait(seconds_max)
        target, tls, pool = _target(request.path, request.query), self._tls_context(), self._pool
        sent = self._credentials.headers()
        if pool is not None:
            response = await pool.send(
                request.method,
                target,
                self._head(pool, request),
                request.body,
                tls=tls,
                seconds_max=seconds_max,
            )
        else:
            content_type = "" if request.body is None else request.content_type
            async with asyncio.timeout(seconds_max):
                response = await self._open_session().send(
                    request.method, target, self._headers(content_type), request.body, tls
                )
        self.date = response.date or self.date
        return response, sent

    async def _wait(self, seconds_max: float | None) -> float | None:
        """Wait until the credentials can be used; return what is left of `seconds_max`.

        If `seconds_max` is None, returns None and waits without a limit. Raises UnreachableError if
        the exec plugin takes longer than `seconds_max`. Also raises UnreachableError if the plugin
        fails but an earlier run succeeded, because a later run may succeed too. Raises
        ConnectionConfigError if the plugin fails and no earlier run succeeded.
        """
        clock = asyncio.get_running_loop().time
        deadline = None if seconds_max is None else clock() + seconds_max
        try:
            async with asyncio.timeout_at(deadline):
                await self._credentials.wait()
        except TimeoutError:
            raise UnreachableError("the credential plugin has not ended yet") from None
        except ConnectionConfigError as cause:
            # upstream: client-go/plugin/pkg/client/auth/exec/exec.go: RoundTrip returns an error
            if self._credentials.has_worked:
                raise UnreachableError(cause.problem) from None
            raise
        return None if deadline is None else max(0.0, deadline - clock())

    def _head(self, pool: HttpPool, request: ApiRequest) -> bytes:
        headers = self._credentials.headers()
        content_type = "" if request.body is None else request.content_type
        known = self._heads.get(content_type)
        if known is None or known[0] is not headers:
            lines = self._headers(content_type)
            # A request without a body is a read. upstream: net/http/transport.go: requestedGzip
            if not content_type:
                lines.append(("Accept-Encoding", "gzip"))
            known = self._heads[content_type] = headers, pool.head(lines)
        return known[1]

    def _headers(self, content_type: str = "") -> list[tuple[str, str]]:
        """Return the headers of a request with a body of type `content_type`; "" means no body."""
        common = [("User-Agent", USER_AGENT), ("Accept", "application/json")]
        more = [("Content-Type", content_type)] if content_type else []
        return [*common, *self._credentials.headers(), *more]

    async def stream(
        self, path: str, query: Mapping[str, str], seconds_max: float
    ) -> AsyncGenerator[list[bytes]]:
        """Send a GET and yield the complete lines of the response as they arrive.

        Yields lists of lines. The first list is empty, and means that the server has accepted the
        request. An incomplete last line is dropped. Raises RequestError if the request is refused,
        if the connection breaks, or if the response has not ended after `seconds_max`. Raises
        ConnectionConfigError if the credentials or TLS settings cannot be used.
        """
        rest, target = b"", _target(path, query)
        try:
            seconds_max = await self._wait(seconds_max) or 0.0
            sent = self._credentials.headers()
            async with (
                asyncio.timeout(seconds_max),
                self._open_session().open(
                    "GET", target, self._headers(), self._tls_context()
                ) as response,
            ):
                if response.status >= 300:
                    if response.status == _UNAUTHORIZED:
                        self._credentials.renew(sent)
                    body = await _start_of(response.content)
                    retry_after = response.headers.get("Retry-After", "")
                    raise self._refused(response.status, body, retry_after)
                yield []
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if len(rest) > LINE_BYTES_MAX:
                        raise RequestError(self.config.server, 0, TOO_LONG, "a line is too long")
                    if lines:
                        yield lines
                    # A stream that never pauses must not block other tasks.
                    await asyncio.sleep(READ_GAP_S if len(lines) < _FEW_LINES else 0)
        except _FAILURES as cause:
            raise self._unreachable(cause) from None

    async def _request(self, request: ApiRequest) -> bytes:
        is_renewed = False
        for number in range(1, TRIES_MAX + 1):
            try:
                response, sent = await self._send(request)
            except _FAILURES as cause:
                is_transient = isinstance(cause, UnreachableError) and cause.is_transient
                may_repeat = request.method == "GET" and is_transient
                if number == TRIES_MAX or not may_repeat:
                    raise self._unreachable(cause) from None
                await asyncio.sleep(_pause_s("", number))
                continue
            status, body = response.status, response.body
            if status < 300:
                return body
            if status == _UNAUTHORIZED and not is_renewed:
                is_renewed = True
                if self._credentials.renew(sent):
                    continue
            retry_after = response.retry_after
            if status in _OVERLOADED and retry_after and number < TRIES_MAX:
                await asyncio.sleep(_pause_s(retry_after, number))
                continue
            raise self._refused(status, body, retry_after)
        raise AssertionError("the last try returns or raises")

    def _tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS settings of the next connection; None for plain HTTP.

        If the TLS files are being replaced and do not fit together yet, return the previous
        settings. Raises ConnectionConfigError if there are no previous settings.
        """
        texts = self._credentials.tls_texts()
        if texts is not self._tls_texts:
            try:
                self._tls = _tls_context_of(self.config, texts)
            except ConnectionConfigError:
                if self._tls is None:
                    raise
            self._tls_texts = texts
        return self._tls

    def _refused(self, code: int, body: bytes, retry_after: str) -> RequestError:
        try:
            status = msgspec.json.decode(body, type=_Status)
        except UNDECODABLE:  # perhaps the response of a proxy in front of the API server
            text = " ".join(body[:_TEXT_MAX].decode(errors="replace").split())
            status = _Status(message=f"status {code}: {text}" if text else "")
        message = status.message[:_MESSAGE_MAX] or f"the server answered with status {code}"
        reason, seconds = status.reason[:_TEXT_MAX], _retry_after_s(retry_after)
        return RequestError(self.config.server, code, reason, message, seconds)

    def _unreachable(self, cause: Exception) -> RequestError:
        self._credentials.connection_failed()
        reason = TOO_LONG if isinstance(cause, TooLongAnswerError) else ""
        match cause:
            case UnreachableError():
                text = str(cause)
            case TimeoutError():
                text, reason = "the server did not answer in time", TIMED_OUT
            case _:
                shown = str(cause)[:_TEXT_MAX] or type(cause).__name__  # may quote the request
                text = f"the connection failed: {shown}"
        return RequestError(self.config.server, 0, reason, " ".join(text.split()))


def usable_credentials(config: ConnectionConfig) -> Credentials:
    """Return credentials for the clients of the server in `config`, after checking them.

    Runs the exec plugin, if it is needed. Raises ConnectionConfigError if the credentials, the TLS
    settings or the proxy cannot be used.
    """
    _system_proxy(config.server)
    credentials = _credentials(config)
    _tls_context_of(config, credentials.tls_texts())
    credentials.headers()
    return credentials


def _tls_context_of(config: ConnectionConfig, texts: TlsTexts) -> ssl.SSLContext | None:
    return tls_context(config, texts.authority, texts.certificate, texts.key)


def _credentials(config: ConnectionConfig) -> Credentials:
    # Credentials expire in real time, in every world.
    return Credentials(config, time.time)  # noqa: TID251


async def _start_of(content: StreamReader) -> bytes:
    """Return the body of an error response, cut after _REFUSAL_BYTES_MAX bytes."""
    try:
        return await content.readexactly(_REFUSAL_BYTES_MAX)
    except asyncio.IncompleteReadError as cut:
        return cut.partial


def _pause_s(retry_after: str, number: int) -> float:
    """Return the seconds to wait after try `number`; the first try has the number 1."""
    return _retry_after_s(retry_after) or min(0.1 * 2**number, PAUSE_SECONDS_MAX)


def _retry_after_s(retry_after: str) -> float:
    """Return the number of seconds in `retry_after`, at most RETRY_SECONDS_MAX.

    Returns 0 if `retry_after`, the text of a Retry-After header, is not a whole number.
    """
    return min(float(retry_after), RETRY_SECONDS_MAX) if retry_after.isdecimal() else 0.0


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def _is_this_machine(host: str) -> bool:
    # upstream: golang.org/x/net/http/httpproxy/proxy.go: useProxy
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a host name
        return False


def _system_proxy(server: str) -> str:
    """Return the URL of the proxy that the environment sets for `server`; "" if it sets none.

    On macOS and Windows, the proxy settings of the system are also read.
    """
    parts = urlsplit(server)
    if not parts.hostname or _is_this_machine(parts.hostname):
        return ""
    has_settings = sys.platform in ("darwin", "win32")  # besides the environment variables
    if not has_settings and not any(name.lower().endswith("_proxy") for name in os.environ):
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - loads http.client

    found = "" if proxy_bypass(parts.hostname) else getproxies().get(parts.scheme, "")
    if not found:
        return ""
    # upstream: golang.org/x/net/http/httpproxy: parseProxy
    url = found if "://" in found else f"http://{found}"
    known = url.replace("socks5h:", "socks5:", 1)  # for both schemes, the proxy resolves names
    require_proxy(f"{parts.scheme.upper()}_PROXY", "", known)
    return url
