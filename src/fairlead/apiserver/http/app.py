"""ApiApp: an ApiServer behind HTTP, as an ASGI application.

    who is it?  ->  the whole body, in bounded size and time  ->  ApiServer.handle  ->  bytes

An answer leaves in parts, compressed where the client asks and it is long; a watch leaves line by
line until it is over, its time is up, the client has gone, or the server is about to stop. What
happens within one `SEND_INTERVAL_S` after that leaves together, so that busy watches cost little.

upstream: apiserver/pkg/server/config.go, endpoints/handlers/{responsewriters/writers,watch}.go
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

from msgspec.structs import replace

from fairlead.apiserver.admission.webhooks.plugin import WebhookNeeded
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
from fairlead.apiserver.http.webhook_client import ask_webhook
from fairlead.apiserver.request import Request, Response, User

BODY_BYTES_MAX: Final = 3 << 20  # upstream: apiserver/pkg/server/config.go:MaxRequestBodyBytes
BODY_SECONDS_MAX: Final = 30.0
GZIP_BYTES_MIN: Final = 128 << 10  # upstream: responsewriters/writers.go:defaultGzipThresholdBytes
GZIP_LEVEL: Final = 1
PARAMETERS_MAX: Final = 256
_MALFORMED: Final = re.compile(";|%(?![0-9A-Fa-f]{2})")
WEBHOOKS_MAX: Final = 4_096  # about one object
NO_CACHE: Final = (b"cache-control", b"no-cache, private")
_WITHOUT_BODY: Final = ("GET", "HEAD")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# The user of a request's headers. Raises ApiError 401.
Authenticate = Callable[[Mapping[str, str]], User]
# Waits until everything that was answered so far can no longer be lost.
Settle = Callable[[], Awaitable[None]]

Act = Callable[[Request], Awaitable[Response]]
# Keeps a line of the audit log.
Audit = Callable[[bytes], object]
NO_ACTS: Final[Mapping[str, Act]] = {}
NO_STATE: Final[Mapping[str, Any]] = {}
NOBODY: Final = User(name="")  # whose credentials mean nothing
Parts = tuple[bytes, ...]
Answer = TypeVar("Answer", bound=Response | Watch)


class _UnreadError(ApiError):
    """A refusal of a body before its end, which nobody will read any more."""


class ApiApp:
    """Answers requests with `server`; `clock` tells the time in ns since 1970."""

    def __init__(
        self,
        server: ApiServer,
        authenticate: Authenticate,
        clock: Callable[[], int],
        settle: Settle | None = None,
        acts: Mapping[str, Act] = NO_ACTS,
        audit: Audit | None = None,
    ) -> None:
        """`settle` is waited for before anything that happened is told, changed or only read.

        Else a client could know of a version that a crash takes back and that comes again with
        other contents, and its watch from there would miss them.
        `acts` answer paths that are not Kubernetes', for users who may ask there. `audit` is given
        a line about each request that was answered.
        """
        self._acts = acts
        self._audit = audit
        self._asked = 0
        self._id_prefix = id_prefix(clock())
        self._server = server
        self._authenticate = authenticate
        self._clock = clock
        self._settle = settle

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request (ASGI)."""
        headers, user = headers_of(scope["headers"]), NOBODY
        # upstream: apiserver/pkg/endpoints/filters/audit_init.go: who asks may choose it
        if not headers.get(AUDIT_ID):
            self._asked += 1
            headers[AUDIT_ID] = f"{self._id_prefix}{self._asked:012x}"
        try:
            # A certificate says more than any token, as upstream has it.
            user = scope.get("state", NO_STATE).get(PEER) or self._authenticate(headers)
            answer = await self._answer(scope, headers, user, receive)
        except ApiError as refusal:
            asked = Request(scope["method"], scope["path"], headers=headers, user=user)
            answer = self._noted(asked, refused(refusal, asked))
            if isinstance(refusal, _UnreadError):
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
        act = self._acts.get(path)
        if act is not None:
            self._server.authorize(request)
            return self._noted(request, await act(request))
        answer = await self._handled(request)
        if self._settle is not None:
            await self._settle()
        return answer

    async def _handled(self, request: Request) -> Response | Watch:
        """The answer, after all webhooks that want to be asked."""
        while len(request.webhooks) < WEBHOOKS_MAX:
            try:
                return self._noted(request, self._server.handle(request, self._clock()))
            except WebhookNeeded as needed:
                said = await ask_webhook(needed.call)
                request = needed.answered(request, said)
        raise ApiError("InternalError", 500, f"more than {WEBHOOKS_MAX} webhooks")

    def _noted(self, request: Request, answer: Answer) -> Answer:
        if self._audit is not None:
            self._audit(audit_line(request, answer, self._clock()))
        return answer

    def close(self) -> None:
        """End all watches in good order: the server is about to stop."""
        self._server.watches.close_all()


def _pretty(query: bytes) -> str:
    """The parameter of that name, "" where it is not given."""
    if b"pretty=" not in query:
        return ""
    parts = query.decode("latin-1").split("&", PARAMETERS_MAX)
    return next((part[len("pretty=") :] for part in parts if part.startswith("pretty=")), "")


def _parameters(query: str) -> tuple[tuple[str, str], ...]:
    """What a query says; what is no parameter in it says nothing. Raises ApiError 400."""
    # upstream: net/url/url.go:parseQuery, whose errors nobody looks at
    parts = query.split("&", PARAMETERS_MAX)
    if len(parts) > PARAMETERS_MAX:
        raise ApiError("BadRequest", 400, "too many query parameters")
    pairs = (part.partition("=") for part in parts if part and not _MALFORMED.search(part))
    return tuple((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs)


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The whole body. Raises ApiError for one that is too long or too slow, and ClientGone."""
    try:
        return await read_body(
            headers, receive, bytes_max=BODY_BYTES_MAX, seconds_max=BODY_SECONDS_MAX
        )
    except BodyTooLongError:
        text = f"Request entity too large: limit is {BODY_BYTES_MAX}"
        raise _UnreadError("RequestEntityTooLarge", 413, text) from None
    except TimeoutError:
        text = f"the body took longer than {BODY_SECONDS_MAX:g} seconds"
        raise _UnreadError("Timeout", 408, text) from None


def _with_header(send: Send, asked: Mapping[str, str]) -> Send:
    """`send`, that says under which id it has noted the request."""
    header = (b"audit-id", asked[AUDIT_ID].encode("latin-1"))

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [header, *message["headers"]]
        await send(message)

    return marked


async def _send(
    send: Send, method: str, asked: Mapping[str, str], response: Response, body: Parts
) -> None:
    """Send the answer to a request with the headers `asked`, of which `body` is the text."""
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
        parts = _zipped(parts)
        length = sum(map(len, parts))
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    *before, last = chunks_of(parts or (b"",))
    for piece in before:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": last})


def _takes_gzip(accepted: str) -> bool:
    # upstream: responsewriters/writers.go:negotiateContentEncoding, which knows of no q
    return any(coding.strip() == "gzip" for coding in accepted.split(","))


def _zipped(parts: tuple[bytes, ...]) -> tuple[bytes, ...]:
    packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
    packed = [packer.compress(part) for part in parts]
    return (*packed, packer.flush())
