"""DashboardApp: the dashboard of a running cluster, as an ASGI application.

    GET  /login?code=…   opens a session, then shows the page
    GET  /               the page
    GET  /live           server-sent events: {"clock": …, "page": …} after each change
    GET  /reports/N      the report of what-if N
    POST /clock          {"advance": "5m"}, {"speed": 60} or {"paused": true}
    POST /node           {"node": "node-1", "action": "drain"}; action.py has the other actions
    POST /explain        {"pod": "default/web-0"}
    POST /ask            {"change": "--drain node-1"}

/clock and /node exist only on the dashboard of a local cluster.

The Host header of every request must be a loopback address, which prevents DNS rebinding. Every
request except `/login` needs a session. A POST also needs the Origin of this server and a JSON
body. So a form or a script of another site cannot send a POST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.app import Message, Receive, Send
from fairlead.apiserver.http.header import headers_of
from fairlead.cli.commands.dashboard.live_recording import LiveRecording
from fairlead.cli.commands.dashboard.question import Questions
from fairlead.cli.commands.dashboard.sessions import Sessions
from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import LOOPBACK
from fairlead.worlds.local.clock import LocalClock

BODY_BYTES_MAX: Final = 16 << 10
BODY_SECONDS_MAX: Final = 10.0
STREAMS_MAX: Final = 16
INTERVAL_S: Final = 0.5
# Seconds without an update of the page, for each second that an update takes. The event loop also
# serves the API, so the page takes at most a tenth of its time.
REST_PER_WORK: Final = 9
KEEP_ALIVE_S: Final = 15.0
JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_NO_SESSION: Final = (
    "This link was used already, or is not valid. For a cluster of `fairlead up`, run `fairlead "
    "dashboard` to get a new link; for `fairlead run`, see docs/production.md.\n"
)

Reply = tuple[int, str, bytes]
Handler = Callable[[Any], Awaitable[Any]]
_Revision = tuple[
    int, float, int | None
]  # (revision of the recording, speed of the clock, time of a paused clock)


class _Refusal(Exception):  # noqa: N818 - the response to a request, not an error of the server
    """Ends the handling of a request, with a status code and a line of text as the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class DashboardApp:
    """The ASGI application of the dashboard: it serves the page, and the state of a cluster."""

    def __init__(
        self,
        page: str,
        *,
        recording: LiveRecording,
        clock: LocalClock,
        sessions: Sessions,
        actions: Mapping[str, Handler],
        questions: Questions,
        port: int,
    ) -> None:
        """`page` is HTML text, and `recording` has the state of the cluster.

        `actions` maps paths of POST requests to handlers. `questions` handles the POST requests to
        `/explain` and `/ask`. `port` is the loopback port that the Host header of each request must
        name.
        """
        self._page = page.encode()
        self._recording = recording
        self._clock = clock
        self._sessions = sessions
        self._questions = questions
        self._hosts = {f"{name}:{port}" for name in LOOPBACK}
        self._posts: Mapping[str, Handler] = {
            **actions,
            "/explain": questions.explain,
            "/ask": questions.ask,
        }
        self._streams = 0
        self._ended = asyncio.Event()
        self._encoded_page = b""
        self._encoded: _Revision | None = None
        self._rest_until = 0.0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request, as an ASGI application."""
        headers = headers_of(scope["headers"])
        try:
            await self._handle(scope, headers, receive, send)
        except _Refusal as refusal:
            await _send(send, refusal.status, "text/plain; charset=utf-8", refusal.text.encode())

    async def _handle(
        self, scope: Message, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        if headers.get("host") not in self._hosts:
            raise _Refusal(421, "The Host header does not name a loopback address.\n")
        if scope["path"] == "/login" and scope["method"] == "GET":
            await self._log_in(scope, send)
            return
        if not self._sessions.is_open(headers.get("cookie", "")):
            raise _Refusal(401, _NO_SESSION)
        if scope["path"] == "/live" and scope["method"] == "GET":
            await self._stream(receive, send)
            return
        await _send(send, *await self._reply(scope, headers, receive))

    def close(self) -> None:
        """End all streams; called before the server stops."""
        self._ended.set()

    async def _log_in(self, scope: Message, send: Send) -> None:
        code = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        cookie = self._sessions.log_in(code)
        if cookie is None:
            raise _Refusal(403, _NO_SESSION)
        more = ((b"set-cookie", cookie.encode()), (b"location", b"/"))
        await _send(send, 303, "text/plain", b"", more)

    async def _reply(self, scope: Message, headers: Mapping[str, str], receive: Receive) -> Reply:
        method, path = scope["method"], scope["path"]
        if method == "GET" and path == "/":
            return 200, _HTML, self._page
        if method == "GET" and path.startswith("/reports/"):
            report = self._questions.report(path.removeprefix("/reports/"))
            if report is None:
                raise _Refusal(404, "There is no such report, or it is too old.\n")
            return 200, _HTML, report
        if method == "POST" and path in self._posts:
            return await self._post(self._posts[path], headers, receive)
        raise _Refusal(404, "Not found\n")

    async def _post(self, handle: Handler, headers: Mapping[str, str], receive: Receive) -> Reply:
        """Handle a POST request; for bad input, respond {"error": …} with status 400."""
        if headers.get("origin") != f"http://{headers['host']}":
            raise _Refusal(403, "The Origin header is not that of this server.\n")
        if headers.get("content-type", "").partition(";")[0].strip() != JSON:
            raise _Refusal(415, "The body must be JSON.\n")
        try:
            result = await handle(_decoded(await _body(receive)))
            return 200, JSON, msgspec.json.encode(result)
        except (InputError, ApiError, msgspec.DecodeError, msgspec.ValidationError) as cause:
            message = cause.message if isinstance(cause, ApiError) else str(cause)
            return 400, JSON, msgspec.json.encode({"error": message})

    # --- the live state ------------------------------------------------------------------------

    async def _stream(self, receive: Receive, send: Send) -> None:
        """Send the state now and after each change.

        Ends when the client disconnects or the server stops.
        """
        if self._streams >= STREAMS_MAX:
            raise _Refusal(429, "Too many pages are open.\n")
        self._streams += 1
        gone = asyncio.ensure_future(_disconnected(receive, self._ended))
        head = [*_HEADERS, (b"content-type", b"text/event-stream")]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            sent: _Revision | None = None
            idle_s = 0.0
            while not gone.done():
                self._encode_page()
                if self._encoded != sent or idle_s >= KEEP_ALIVE_S:
                    body = b": alive\n\n" if self._encoded == sent else self._event()
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    sent, idle_s = self._encoded, 0.0
                await asyncio.wait([gone], timeout=INTERVAL_S)
                idle_s += INTERVAL_S
            if self._ended.is_set():
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams -= 1
            gone.cancel()

    def _encode_page(self) -> None:
        """Encode the page if the state has changed.

        After an encoding that took t seconds, the page is not encoded again for REST_PER_WORK * t
        seconds.
        """
        clock = self._clock
        paused_at = clock.now() if clock.is_paused else None
        revision = (self._recording.revision, clock.speed, paused_at)
        started = perf_counter()
        if revision == self._encoded or started < self._rest_until:
            return
        self._encoded_page = msgspec.json.encode(self._recording.page())
        self._encoded = revision
        took = perf_counter() - started
        self._rest_until = started + took * (1 + REST_PER_WORK)

    def _event(self) -> bytes:
        """Return the server-sent event with the encoded page and the current time."""
        clock = self._clock
        time = {
            "now": format_timestamp(clock.now()),
            "speed": clock.speed,
            "paused": clock.is_paused,
        }
        state = {"clock": time, "page": msgspec.Raw(self._encoded_page)}
        return b"data: " + msgspec.json.encode(state) + b"\n\n"


async def _disconnected(receive: Receive, ended: asyncio.Event) -> None:
    """Wait until the client disconnects, or until `ended` is set because the server stops."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(gone()), asyncio.ensure_future(ended.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _body(receive: Receive) -> bytes:
    """Return the body of a request.

    Raises _Refusal if the body is too long or arrives too slowly.
    """
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(BODY_SECONDS_MAX):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > BODY_BYTES_MAX:
                    raise _Refusal(413, "The body is too long.\n")
                if not message.get("more_body"):
                    return bytes(body)
    raise _Refusal(408, "The body took too long.\n")


def _decoded(body: bytes) -> Any:
    """Return the JSON value in a request body. Raises DecodeError."""
    try:
        return msgspec.json.decode(body)
    except (UnicodeDecodeError, RecursionError) as cause:
        raise msgspec.DecodeError(str(cause)) from None


async def _send(
    send: Send,
    status: int,
    content_type: str,
    body: bytes,
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    length = str(len(body)).encode()
    head = [*_HEADERS, *more, (b"content-type", content_type.encode()), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
