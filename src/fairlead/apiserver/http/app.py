"""ApiApp: an ApiServer as an ASGI application.

    1. authenticate   by client certificate or bearer token, before the body is read
    2. read the body  bounded in size and time
    3. handle         `ApiServer.handle`, suspended while a webhook is called
    4. settle         wait until what the answer tells is durable
    5. send           in chunks, compressed if long; a watch line by line

upstream: apiserver/pkg/server/config.go, endpoints/handlers/{responsewriters/writers,watch}.go
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

from msgspec.structs import replace

from fairlead.apiserver.endpoints.audit import AUDIT_ID, audit_line, id_prefix
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.server import ApiServer, refused
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.chunk import chunks_of
from fairlead.apiserver.http.header import headers_of
from fairlead.apiserver.http.peer_certificate import PEER
from fairlead.apiserver.http.pretty_print import formatted_body
from fairlead.apiserver.http.request_body import BodyTooLongError, ClientGone, read_body
from fairlead.apiserver.http.warning_header import warning_headers
from fairlead.apiserver.http.watch_stream import stream
from fairlead.apiserver.http.webhook_client import call_webhook
from fairlead.apiserver.request import Request, Response, User

BODY_BYTES_MAX: Final = 3 << 20  # upstream: apiserver/pkg/server/config.go:MaxRequestBodyBytes
BODY_SECONDS_MAX: Final = 30.0
GZIP_BYTES_MIN: Final = 128 << 10  # upstream: responsewriters/writers.go:defaultGzipThresholdBytes
GZIP_LEVEL: Final = 1
PARAMETERS_MAX: Final = 256
_MALFORMED: Final = re.compile(";|%(?![0-9A-Fa-f]{2})")
NO_CACHE: Final = (b"cache-control", b"no-cache, private")
_WITHOUT_BODY: Final = ("GET", "HEAD")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Finds the user by the headers. Raises ApiError 401.
Authenticate = Callable[[Mapping[str, str]], User]
# Waits until all changes so far are durable.
Settle = Callable[[], Awaitable[None]]

PathHandler = Callable[[Request], Awaitable[Response]]
# Writes a line of the audit log.
Audit = Callable[[bytes], object]
NO_HANDLERS: Final[Mapping[str, PathHandler]] = {}
NO_STATE: Final[Mapping[str, Any]] = {}
UNKNOWN_USER: Final = User(name="")  # in the audit log, after failed authentication
Parts = tuple[bytes, ...]
Answer = TypeVar("Answer", bound=Response | Watch)


class _UnreadBodyError(ApiError):
    """A body refused before its end: the connection must be closed after the answer."""


class ApiApp:
    """Serves `server`; `clock` returns ns since 1970."""

    def __init__(
        self,
        server: ApiServer,
        authenticate: Authenticate,
        clock: Callable[[], int],
        settle: Settle | None = None,
        handlers: Mapping[str, PathHandler] = NO_HANDLERS,
        audit: Audit | None = None,
    ) -> None:
        """`settle` is awaited before every answer, also to a read, and before watch events.

        Otherwise a client could see a resourceVersion that a crash takes back. The version would
        then be given to another change, and a watch from there would miss that change.
        `handlers` serve further paths, after authorization. `audit` gets one line per answer.
        """
        self._handlers = handlers
        self._audit = audit
        self._requests = 0
        self._id_prefix = id_prefix(clock())
        self._server = server
        self._authenticate = authenticate
        self._clock = clock
        self._settle = settle

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request (ASGI)."""
        headers, user = headers_of(scope["headers"]), UNKNOWN_USER
        # upstream: apiserver/pkg/endpoints/filters/audit_init.go: the client may choose it
        if not headers.get(AUDIT_ID):
            self._requests += 1
            headers[AUDIT_ID] = f"{self._id_prefix}{self._requests:012x}"
        try:
            # As upstream, a client certificate takes precedence over a token.
            user = scope.get("state", NO_STATE).get(PEER) or self._authenticate(headers)
            answer = await self._answer(scope, headers, user, receive)
        except ApiError as refusal:
            request = Request(scope["method"], scope["path"], headers=headers, user=user)
            answer = self._audited(request, refused(refusal, request))
            if isinstance(refusal, _UnreadBodyError):
                answer = replace(answer, headers=(("Connection", "close"),))
        except ClientGone:
            return
        if isinstance(answer, Watch):
            send = _with_header(send, headers)
            await stream(answer, self._server.watches, receive, send, self._settle)
        else:
            pretty = _pretty(scope["query_string"])
            body = formatted_body(answer, scope["path"], pretty, headers)
            await _send(send, scope["method"], headers, answer, body)

    async def _answer(
        self, scope: Message, headers: Mapping[str, str], user: User, receive: Receive
    ) -> Response | Watch:
        method, path = scope["method"], scope["path"]
        body = b"" if method in _WITHOUT_BODY else await _body(headers, receive)
        query = scope["query_string"]
        parameters = _parameters(query.decode("latin-1")) if query else ()
        request = Request(method, path, parameters, headers, body, user)
        handler = self._handlers.get(path)
        if handler is not None:
            self._server.authorize(request)
            return self._audited(request, await handler(request))
        answer = await self._handled(request)
        if self._settle is not None:
            await self._settle()
        return answer

    async def _handled(self, request: Request) -> Response | Watch:
        """Handle a request, calling the webhooks that it waits for."""
        steps = self._server.handle.steps(request, self._clock())
        try:
            call = next(steps)
            while True:
                call = steps.send(await call_webhook(call))
        except StopIteration as end:
            answer: Response | Watch = end.value
        return self._audited(request, answer)

    def _audited(self, request: Request, answer: Answer) -> Answer:
        if self._audit is not None:
            self._audit(audit_line(request, answer, self._clock()))
        return answer

    def close(self) -> None:
        """End all watches before the server stops."""
        self._server.watches.close_all()


def _pretty(query: bytes) -> str:
    """The `pretty` parameter, "" if there is none."""
    if b"pretty=" not in query:
        return ""
    parts = query.decode("latin-1").split("&", PARAMETERS_MAX)
    return next((part[len("pretty=") :] for part in parts if part.startswith("pretty=")), "")


def _parameters(query: str) -> tuple[tuple[str, str], ...]:
    """The parameters of a query; malformed ones are ignored. Raises ApiError 400."""
    # upstream: net/url/url.go:parseQuery, whose errors upstream ignores
    parts = query.split("&", PARAMETERS_MAX)
    if len(parts) > PARAMETERS_MAX:
        raise ApiError("BadRequest", 400, "too many query parameters")
    pairs = (part.partition("=") for part in parts if part and not _MALFORMED.search(part))
    return tuple((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs)


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The whole body. Raises ApiError if it is too long or too slow, and ClientGone."""
    try:
        return await read_body(
            headers, receive, bytes_max=BODY_BYTES_MAX, seconds_max=BODY_SECONDS_MAX
        )
    except BodyTooLongError:
        text = f"Request entity too large: limit is {BODY_BYTES_MAX}"
        raise _UnreadBodyError("RequestEntityTooLarge", 413, text) from None
    except TimeoutError:
        text = f"the body took longer than {BODY_SECONDS_MAX:g} seconds"
        raise _UnreadBodyError("Timeout", 408, text) from None


def _with_header(send: Send, asked: Mapping[str, str]) -> Send:
    """`send`, adding the audit-id header."""
    header = (b"audit-id", asked[AUDIT_ID].encode("latin-1"))

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [header, *message["headers"]]
        await send(message)

    return marked


async def _send(
    send: Send, method: str, asked: Mapping[str, str], response: Response, body: Parts
) -> None:
    """Send `body` as the answer to a request with the headers `asked`."""
    parts = body if method != "HEAD" else ()
    length = sum(map(len, body))
    headers = [NO_CACHE, (b"audit-id", asked[AUDIT_ID].encode("latin-1"))]
    if response.content_type:
        headers.append((b"content-type", response.content_type.encode()))
    if response.headers:
        headers += [(name.lower().encode(), text.encode()) for name, text in response.headers]
        if any(name == b"cache-control" for name, _ in headers[2:]):
            del headers[0]
    if response.warnings:
        headers += warning_headers(response.warnings)
    if length > GZIP_BYTES_MIN and _takes_gzip(asked.get("accept-encoding", "")):
        parts = _gzipped(parts)
        length = sum(map(len, parts))
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    *before, last = chunks_of(parts or (b"",))
    for chunk in before:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": last})


def _takes_gzip(accepted: str) -> bool:
    # upstream: responsewriters/writers.go:negotiateContentEncoding, which ignores q values
    return any(coding.strip() == "gzip" for coding in accepted.split(","))


def _gzipped(parts: tuple[bytes, ...]) -> tuple[bytes, ...]:
    packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
    packed = [packer.compress(part) for part in parts]
    return (*packed, packer.flush())
