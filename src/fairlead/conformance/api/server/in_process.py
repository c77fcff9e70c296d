"""InProcess: runs Fairlead's server without a socket; its clock advances only between requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, NANOSECONDS_PER_SECOND
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.server import refused
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import Request, Response
from fairlead.conformance.api.exchange import ReplayRequest
from fairlead.conformance.api.server.own_server import START, OwnServer, token_of
from fairlead.conformance.api.transport import HttpAnswer, WatchEnd

Message = MutableMapping[str, Any]

_BETWEEN_NS: Final = 10 * NANOSECONDS_PER_SECOND


class InProcess(Struct):
    """Sends requests to the server `own` in this process.

    A watch ends at its timeout, or earlier if `InProcessWatch.finish` is called.
    """

    own: OwnServer = field(default_factory=OwnServer)
    _begin: int = START
    _open: list[InProcessWatch] = field(default_factory=list)

    @property
    def may_run_controllers(self) -> bool:
        """Whether controllers run on this server."""
        return self.own.has_controllers

    def holds(self, name: str) -> bool:
        """Return whether an object called `name` exists, or controllers could create one."""
        storage = self.own.store.storage
        every = (obj for kind in storage.kinds() for obj in storage.unsorted(kind))
        return self.may_run_controllers or any(obj["metadata"]["name"] == name for obj in every)

    def begin(self) -> None:
        """Prepare for another case: advance the time of the server by 10 s."""
        self._begin = self.own.now = self.own.now + _BETWEEN_NS

    def ask(self, replayed: ReplayRequest) -> HttpAnswer:
        """Send a request and return its response."""
        exchange = _Exchange(replayed.body)
        self.own.settle()
        try:
            asyncio.run(self.own.app(_scope(replayed), exchange.receive, exchange.send))
        except Exception as defect:  # noqa: BLE001 - a socket's server would answer 500, too
            return HttpAnswer(500, (), f"{type(defect).__name__}: {defect}".encode())
        self.own.settle()
        return HttpAnswer(exchange.status, exchange.headers, bytes(exchange.body))

    def watch(self, replayed: ReplayRequest) -> InProcessWatch:
        """Send the watch request `replayed` and return the open watch."""
        watched = InProcessWatch(self._answer(replayed), self._end_of(replayed))
        self._open.append(watched)
        return watched

    def _answer(self, replayed: ReplayRequest) -> Response | Watch:
        headers = _headers(replayed)
        request = Request(replayed.method, replayed.path, replayed.query, headers, replayed.body)
        try:
            request = replace(request, user=self.own.tokens(headers))
            return self.own.server.handle(request, self.own.now)
        except ApiError as refusal:
            return refused(refusal, request)

    def _end_of(self, replayed: ReplayRequest) -> int | None:
        timeout_s = replayed.timeout_s
        return None if timeout_s is None else self.own.now + int(timeout_s * NANOSECONDS_PER_SECOND)

    def reach(self, at_ms: int) -> None:
        """Advance to `at_ms` ms after the start of the case.

        The watches that time out before this time are ended.
        """
        target = max(self.own.now, self._begin + at_ms * NANOSECONDS_PER_MILLISECOND)
        timed = [watched for watched in self._open if watched.until is not None]
        for watched in sorted(timed, key=lambda one: one.until or 0):
            if watched.until is None or watched.until > target:
                break
            self._pass_time(watched.until)
            watched.end()
        self._pass_time(target)
        self._open = [watched for watched in self._open if not watched.is_over]

    def _pass_time(self, until: int) -> None:
        self.own.now = max(self.own.now, until)
        self.own.settle()


class InProcessWatch(Struct):
    """The result of a watch request: an open watch or, if none was opened, an ordinary response.

    An ordinary response contains an error, or a single object with status 200.

    `until` is the time in ns since 1970 at which the watch times out; None if it has no timeout.
    """

    answer: Response | Watch
    until: int | None
    is_over: bool = False
    _lines: list[bytes] = field(default_factory=list)

    def end(self) -> None:
        """End the watch."""
        if isinstance(self.answer, Watch) and not self.is_over:
            self._lines += self.answer.pop_lines()
            self.answer.close()
        self.is_over = True

    def finish(self, events: int, *, until_end: bool) -> WatchEnd:
        """End the watch and return all of its events; the arguments have no effect."""
        self.end()
        match self.answer:
            case Watch() as watch:
                headers = [("content-type", watch.content_type)]
                shown = [json.loads(line) for line in self._lines if line.strip()]
                return WatchEnd(HttpAnswer(200, headers, b""), shown, ended=True)
            case Response() as response:
                body = b"".join(response.body)
                headers = [
                    ("content-type", response.content_type),
                    *((name.lower(), text) for name, text in response.headers),
                ]
                if response.status != 200:
                    return WatchEnd(HttpAnswer(response.status, headers, body), ended=True)
                return WatchEnd(HttpAnswer(200, headers, b""), [json.loads(body)], ended=True)


class _Exchange(Struct):
    """One request to an ASGI application and its response."""

    sent: bytes
    is_sent: bool = False
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)

    async def receive(self) -> Message:
        """Return the request body in the first call, and `http.disconnect` in later calls."""
        if self.is_sent:
            return {"type": "http.disconnect"}
        self.is_sent = True
        return {"type": "http.request", "body": self.sent, "more_body": False}

    async def send(self, message: Message) -> None:
        """Store one part of the response; the application calls this method."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.decode(), text.decode()) for name, text in message["headers"]]
        else:
            self.body += message.get("body", b"")


def _scope(replayed: ReplayRequest) -> Message:
    headers = [(name.encode(), text.encode()) for name, text in _headers(replayed).items()]
    return {
        "type": "http",
        "method": replayed.method,
        "path": replayed.path,
        "query_string": urlencode(replayed.query).encode(),
        "headers": headers,
    }


def _headers(replayed: ReplayRequest) -> dict[str, str]:
    headers = {name.lower(): text for name, text in replayed.headers.items()}
    if replayed.user is not None:
        headers["authorization"] = f"Bearer {token_of(replayed.user)}"
    if replayed.body:
        headers["content-length"] = str(len(replayed.body))
    return headers
