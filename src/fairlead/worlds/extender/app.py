"""ExtenderApp: the verbs of an extender over HTTP, as an ASGI application.

    POST /filter, /prioritize, /preempt, /bind      with a body of application/json

Other requests are rejected with a 4xx status and a one-line reason, if possible before the body is
read. The size of a body and the time to receive it are bounded. Therefore a slow client cannot
occupy the server.

A web page in a browser on this machine must not be able to send requests. Browsers send
application/json to another origin only after a CORS preflight, which fails here. A page that uses
DNS rebinding needs no preflight. But its requests have the page's own host name in the Host header,
so ExtenderApp rejects them if `hosts` lists the allowed names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from fairlead.api.extender import ProtocolError
from fairlead.apiserver.http.request_body import BodyTooLongError, ClientGone, read_body
from fairlead.engine.extender_backend import ExtenderBackendError

BODY_BYTES_MAX: Final = 128 << 20
BODY_SECONDS_MAX: Final = 30.0
JSON: Final = "application/json"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Verb = Callable[[bytes], Awaitable[bytes]]


class _Refusal(Exception):  # noqa: N818 - an answer, not an error of ours
    """The request is rejected with the HTTP status `status`."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Request(Struct, frozen=True):
    method: str
    path: str
    headers: Mapping[str, str]


class ExtenderApp:
    """Serves `verbs`; if `hosts` is not empty, the Host header must name one of `hosts`."""

    def __init__(self, verbs: Mapping[str, Verb], hosts: Collection[str] = ()) -> None:
        """`verbs` maps names to functions, which raise ProtocolError for a malformed request."""
        self._verbs = verbs
        self._hosts = hosts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        request = _Request(scope["method"], scope["path"], headers)
        try:
            verb = self._verb(request)
            body = await _body(request, receive)
            answer = await self._answer(verb, body)
        except ClientGone:
            return
        except _Refusal as refusal:
            await _refuse(send, refusal)
        else:
            await _send(send, HTTPStatus.OK, JSON, answer)

    def _verb(self, request: _Request) -> Verb:
        verb = self._verbs.get(request.path.removeprefix("/"))
        if verb is None:
            known = ", ".join(f"/{name}" for name in self._verbs)
            raise _Refusal(HTTPStatus.NOT_FOUND, f"no such path; known: {known}")
        if request.method != "POST":
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "the method must be POST")
        if self._hosts and _host(request) not in self._hosts:
            raise _Refusal(HTTPStatus.MISDIRECTED_REQUEST, "the Host header names another machine")
        media_type, _, _ = request.headers.get("content-type", "").partition(";")
        if media_type.strip().lower() != JSON:
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type must be {JSON}")
        return verb

    async def _answer(self, verb: Verb, body: bytes) -> bytes:
        try:
            return await verb(body)
        except ProtocolError as cause:
            raise _Refusal(HTTPStatus.BAD_REQUEST, str(cause)) from None
        except ExtenderBackendError as cause:
            raise _Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(cause)) from None
        except Exception as cause:  # noqa: BLE001 - one bad question must not end the service
            text = f"internal error: {type(cause).__name__}: {cause}"
            raise _Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, text) from None


def _host(request: _Request) -> str:
    """Return the host of the Host header, without its port."""
    host = request.headers.get("host", "")
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


async def _body(request: _Request, receive: Receive) -> bytes:
    """Return the request body.

    Raises _Refusal if the body is too long or arrives too slowly. Raises ClientGone if the client
    disconnects.
    """
    try:
        return await read_body(
            request.headers, receive, bytes_max=BODY_BYTES_MAX, seconds_max=BODY_SECONDS_MAX
        )
    except BodyTooLongError:
        text = f"the body is longer than {BODY_BYTES_MAX} bytes"
        raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text) from None
    except TimeoutError:
        text = f"the body took longer than {BODY_SECONDS_MAX:g} seconds"
        raise _Refusal(HTTPStatus.REQUEST_TIMEOUT, text) from None


async def _refuse(send: Send, refusal: _Refusal) -> None:
    """Send the refusal and close the connection, because part of the request may be unread."""
    line = " ".join(str(refusal).split()) + "\n"
    more = [(b"connection", b"close")]
    if refusal.status is HTTPStatus.METHOD_NOT_ALLOWED:
        more.append((b"allow", b"POST"))
    await _send(send, refusal.status, "text/plain; charset=utf-8", line.encode(), more)


async def _send(
    send: Send,
    status: HTTPStatus,
    media_type: str,
    body: bytes,
    more: Collection[tuple[bytes, bytes]] = (),
) -> None:
    headers = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(body)).encode()),
        *more,
    ]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})
