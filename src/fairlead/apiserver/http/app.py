"""ApiApp: an ApiServer as an ASGI application.

    1. authenticate   by client certificate or bearer token
    2. authorize      by path, method and headers only
    3. read the body  bounded in size and time
    4. handle         `ApiServer.handle`, suspended while a webhook is called
    5. wait           until the changes that the response shows are durable
    6. send           in chunks, compressed if long; a watch line by line, or over a WebSocket

upstream: apiserver/pkg/server/config.go, endpoints/handlers/{responsewriters/writers,watch}.go
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from email.utils import formatdate
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import unquote_plus

from msgspec.structs import replace

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.apiserver.auth.authentication.token import (
    ANONYMOUS,
    is_websocket_request,
    unauthorized,
)
from fairlead.apiserver.endpoints.audit import AUDIT_ID, AuditBackend, audit_line, id_prefix
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.server import ApiServer, refused
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.chunk import chunks_of
from fairlead.apiserver.http.connection_timeouts import UPGRADE
from fairlead.apiserver.http.header import headers_of
from fairlead.apiserver.http.peer_certificate import PEER, Peer
from fairlead.apiserver.http.pretty_print import formatted_body
from fairlead.apiserver.http.request_body import (
    BodyBudget,
    BodyTooLongError,
    ClientGone,
    Count,
    TooManyBodiesError,
    read_body,
)
from fairlead.apiserver.http.suspended_steps import run_steps
from fairlead.apiserver.http.warning_header import warning_headers
from fairlead.apiserver.http.watch_stream import stream
from fairlead.apiserver.request import Request, Response, User

BODY_BYTES_MAX: Final = 3 << 20  # upstream: apiserver/pkg/server/config.go:MaxRequestBodyBytes
BODY_SECONDS_MAX: Final = 30.0
GZIP_BYTES_MIN: Final = 128 << 10  # upstream: responsewriters/writers.go:defaultGzipThresholdBytes
GZIP_LEVEL: Final = 1
PARAMETERS_MAX: Final = 256
_MALFORMED: Final = re.compile(";|%(?![0-9A-Fa-f]{2})")
NO_CACHE: Final = (b"cache-control", b"no-cache, private")
CLUSTER_TIME: Final = b"fairlead-time"
_WITHOUT_BODY: Final = ("GET", "HEAD")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Finds the user by the headers. Raises ApiError 401.
Authenticate = Callable[[Mapping[str, str]], User]


class WaitUntilDurable(Protocol):
    """Waits until changes to the storage are durable."""

    def __call__(self, version: int = ..., /) -> Awaitable[None]:
        """Wait until all changes so far, or those up to `version`, are durable."""
        ...


PathHandler = Callable[[Request], Awaitable[Response]]
NO_HANDLERS: Final[Mapping[str, PathHandler]] = {}
NO_STATE: Final[Mapping[str, Any]] = {}
UNKNOWN_USER: Final = User(name="")  # the user in the audit log if authentication failed
Answer = TypeVar("Answer", bound=Response | Watch)


class _UnreadBodyError(ApiError):
    """A body was refused before all of it was read, so the connection must be closed.

    The connection is closed after the response.
    """


class ApiApp:
    """An ASGI application that serves `server`; `clock` returns ns since 1970."""

    def __init__(
        self,
        server: ApiServer,
        authenticate: Authenticate,
        clock: Callable[[], int],
        wait_until_durable: WaitUntilDurable | None = None,
        handlers: Mapping[str, PathHandler] = NO_HANDLERS,
        audit: AuditBackend | None = None,
    ) -> None:
        """`wait_until_durable` is awaited before a response or watch event of `server` is sent.

        The response to a read waits too. Otherwise, a client could see a change that a crash then
        reverts. After the restart, a different change would get the resourceVersion of the reverted
        change. If a response shows only one object, the wait ends when this object's version
        (`Response.version`) is durable. `handlers` serve additional paths, after authorization.
        `audit` gets one line per response.
        """
        self._handlers = handlers
        self._audit = audit
        self._requests = 0
        self._id_prefix = id_prefix(clock())
        self._server = server
        self._handle = server.handle.steps
        self._authenticate = authenticate
        self._clock = clock
        self._wait_until_durable = wait_until_durable
        self._bodies = BodyBudget()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one ASGI request."""
        headers, user = headers_of(scope["headers"]), UNKNOWN_USER
        # upstream: apiserver/pkg/endpoints/filters/audit_init.go; a client may send the audit id
        if not headers.get(AUDIT_ID):
            self._requests += 1
            headers[AUDIT_ID] = f"{self._id_prefix}{self._requests:012x}"
        try:
            user = self._user(scope.get("state", NO_STATE).get(PEER), headers)
            request = _request(scope, headers, user)
            answer = await self._answer(request, receive)
        except ApiError as refusal:
            request = Request(scope["method"], scope["path"], headers=headers, user=user)
            answer = self._audited(request, refused(refusal, request))
            if isinstance(refusal, _UnreadBodyError):
                answer = replace(answer, headers=(*answer.headers, ("Connection", "close")))
        except ClientGone:
            return
        if isinstance(answer, Watch):
            await self._stream(answer, request, scope, receive, send)
        else:
            pretty = _pretty(scope["query_string"])
            body = formatted_body(answer, scope["path"], pretty, headers)
            if scope.get("http_version") == "1.0":  # HTTP/1.0 has no chunked encoding
                body = iter(tuple(body))
            await _send(send, scope["method"], headers, answer, body, self._clock())

    def _user(self, peer: Peer | None, headers: Mapping[str, str]) -> User:
        """Return the user of a request with these headers. Raises ApiError 401.

        As in upstream, a client certificate takes precedence over a token. A request with an
        expired certificate needs a token.
        """
        if peer is None:
            return self._authenticate(headers)
        # upstream: Go's crypto/x509/verify.go:isValid, which includes the time of expiry itself
        if self._clock() <= peer.expires_at:
            return peer.user
        user = self._authenticate(headers)
        if user is ANONYMOUS:
            raise unauthorized()
        return user

    async def _stream(
        self, watch: Watch, request: Request, scope: Message, receive: Receive, send: Send
    ) -> None:
        """Send `watch` as a chunked response, or over a WebSocket if the client asks for one."""
        upgraded = scope.get("state", NO_STATE).get(UPGRADE)
        if upgraded is not None and is_websocket_request(request.headers):
            await self._stream_over_websocket(watch, request, scope, receive, send)
            return
        marked = _with_headers(send, _common_headers(request.headers, self._clock()))
        await stream(watch, self._server.watches, receive, marked, self._wait_until_durable)

    async def _stream_over_websocket(
        self, watch: Watch, request: Request, scope: Message, receive: Receive, send: Send
    ) -> None:
        """Send `watch` over a WebSocket, or refuse the handshake.

        A refusal gets its own line in the audit log, after the line of the watch.
        """
        from fairlead.apiserver.http.websocket import (  # noqa: PLC0415 - few clients need it
            HandshakeError,
            WebSocket,
            handshake,
        )

        headers, now = request.headers, self._clock()
        try:
            accepted = handshake(headers)
        except HandshakeError as cause:
            watch.close()
            more = (*cause.headers, ("Connection", "close"))
            response = Response(cause.code, (cause.text.encode(),), "text/plain", more)
            self._audited(request, response)
            await _send(send, request.method, headers, response, iter(response.body), now)
            return
        websocket = WebSocket()
        upgraded = partial(scope["state"][UPGRADE], websocket)
        marked = _with_headers(upgraded, [*accepted, *_common_headers(headers, now)])
        frames = websocket.text_frames
        watches = self._server.watches
        await stream(watch, watches, receive, marked, self._wait_until_durable, frames)

    async def _answer(self, request: Request, receive: Receive) -> Response | Watch:
        if request.method in _WITHOUT_BODY:
            return await self.handle(request)
        self._server.authorize(request)
        with self._bodies.request_of(request.user.name) as count:
            body = await _body(request.headers, receive, count)
            return await self.handle(replace(request, body=body))

    async def handle(self, request: Request) -> Response | Watch:
        """Authorize, perform and audit a request; return when its changes are durable.

        Raises ApiError if the changes cannot be written. For a path in the constructor's
        `handlers`, also raises ApiError if the user may not send the request, or if the handler
        refuses it.
        """
        handler = self._handlers.get(request.path)
        if handler is not None:
            self._server.authorize(request)
            return self._audited(request, await handler(request))
        result = await run_steps(self._handle(request, self._clock()))
        answer = self._audited(request, result)
        if self._wait_until_durable is not None:
            version = answer.version if isinstance(answer, Response) else None
            await (
                self._wait_until_durable() if version is None else self._wait_until_durable(version)
            )
        return answer

    def _audited(self, request: Request, answer: Answer) -> Answer:
        if self._audit is not None:
            line = audit_line(request, answer, self._clock(), self._audit.level)
            self._audit.write(line)
        return answer

    def close(self) -> None:
        """End all watches before the server stops."""
        self._server.watches.close_all()


def _request(scope: Message, headers: Mapping[str, str], user: User) -> Request:
    """Return the request of `scope` without its body.

    Raises ApiError 400 if there are too many query parameters.
    """
    query = scope["query_string"]
    parameters = _parameters(query.decode("latin-1")) if query else ()
    return Request(scope["method"], scope["path"], parameters, headers, b"", user)


def _pretty(query: bytes) -> str:
    """Return the `pretty` parameter of `query`; "" if it is missing."""
    if b"pretty=" not in query:
        return ""
    parts = query.decode("latin-1").split("&", PARAMETERS_MAX)
    return next((part[len("pretty=") :] for part in parts if part.startswith("pretty=")), "")


def _parameters(query: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters in `query`; malformed parameters are left out.

    Raises ApiError 400 if there are more than PARAMETERS_MAX parameters.
    """
    # upstream: net/url/url.go:parseQuery; upstream ignores its errors
    parts = query.split("&", PARAMETERS_MAX)
    if len(parts) > PARAMETERS_MAX:
        raise ApiError("BadRequest", 400, "too many query parameters")
    pairs = (part.partition("=") for part in parts if part and not _MALFORMED.search(part))
    return tuple((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs)


async def _body(headers: Mapping[str, str], receive: Receive, count: Count) -> bytes:
    """Return the body of the request.

    Raises ApiError if the body is refused, and ClientGone if the client disconnects.
    """
    try:
        return await read_body(
            headers, receive, bytes_max=BODY_BYTES_MAX, seconds_max=BODY_SECONDS_MAX, count=count
        )
    except BodyTooLongError:
        text = f"Request entity too large: limit is {BODY_BYTES_MAX}"
        raise _UnreadBodyError("RequestEntityTooLarge", 413, text) from None
    except TimeoutError:
        text = f"the body took longer than {BODY_SECONDS_MAX:g} seconds"
        raise _UnreadBodyError("Timeout", 408, text) from None
    except TooManyBodiesError:
        # upstream: apiserver/pkg/server/filters/maxinflight.go:tooManyRequests
        text = "Too many requests, please try again later."
        raise _UnreadBodyError("TooManyRequests", 429, text, retry_after_s=1) from None


@lru_cache(maxsize=4)
def _cluster_time(seconds: int) -> tuple[bytes, bytes]:
    """Return the header fairlead-time: the time of the cluster, `seconds` since 1970.

    This time is not sent as the header Date, because clients compare Date with their own clocks.
    """
    return (CLUSTER_TIME, formatdate(seconds, usegmt=True).encode())


def _common_headers(request_headers: Mapping[str, str], now: int) -> list[tuple[bytes, bytes]]:
    """Return the headers that every response has."""
    return [
        (b"audit-id", request_headers[AUDIT_ID].encode("latin-1")),
        _cluster_time(now // NANOSECONDS_PER_SECOND),
    ]


def _with_headers(send: Send, added: Iterable[tuple[bytes, bytes]]) -> Send:
    """Return a function that sends with `send` and adds the headers `added` to the response."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*added, *message["headers"]]
        await send(message)

    return marked


async def _send(
    send: Send,
    method: str,
    request_headers: Mapping[str, str],
    response: Response,
    body: Iterator[bytes],
    now: int,
) -> None:
    """Send `response` to the client, with `body` instead of `response.body`."""
    parts, length, is_complete = _beginning(body)
    headers = [NO_CACHE, *_common_headers(request_headers, now)]
    if response.content_type:
        headers.append((b"content-type", response.content_type.encode()))
    if response.headers:
        headers += [(name.lower().encode(), text.encode()) for name, text in response.headers]
        if any(name == b"cache-control" for name, _ in headers[3:]):
            del headers[0]
    if response.warnings:
        headers += warning_headers(response.warnings)
    whole: Iterator[bytes] = chain(parts, body)
    if length > GZIP_BYTES_MIN and _takes_gzip(request_headers.get("accept-encoding", "")):
        whole, is_complete = _gzipped(whole), False
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    if is_complete:
        headers.append((b"content-length", str(length).encode()))
        whole = iter((b"".join(parts),))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    chunks = chunks_of(whole if method != "HEAD" else (b"",))
    chunk = next(chunks)
    for following in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        chunk = following
    await send({"type": "http.response.body", "body": chunk})


def _beginning(body: Iterator[bytes]) -> tuple[list[bytes], int, bool]:
    """Take parts of `body` until they exceed GZIP_BYTES_MIN.

    Return the parts, their length in bytes, and whether all parts were taken.
    """
    parts, length = [], 0
    for part in body:
        parts.append(part)
        length += len(part)
        if length > GZIP_BYTES_MIN:
            following = next(body, None)
            return (
                (parts, length, True) if following is None else ([*parts, following], length, False)
            )
    return parts, length, True


def _takes_gzip(accepted: str) -> bool:
    # upstream: responsewriters/writers.go:negotiateContentEncoding, which ignores q values
    return any(coding.strip() == "gzip" for coding in accepted.split(","))


def _gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
    for part in parts:
        packed = packer.compress(part)
        if packed:
            yield packed
    yield packer.flush()
