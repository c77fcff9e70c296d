"""HttpConnection: one connection of an HttpPool, and the response to its request.

upstream: net/http/transport.go
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Callable
from typing import Final, cast

import httptools
from msgspec import Struct

HEAD_BYTES_MAX: Final = 10 << 20  # upstream: net/http/transport.go: maxHeaderResponseSize
_GZIP: Final = 31  # the wbits of zlib for data with the header and trailer of gzip
# The maximum number of bytes that are decompressed at once. Almost every body is shorter.
_STEP_BYTES: Final = 128 << 20


class UnreachableError(Exception):
    """No usable response arrived; the text is the reason.

    `is_transient` means that an open connection was closed before a response began, so that another
    try may succeed.
    """

    def __init__(self, reason: str, *, is_transient: bool = False) -> None:
        """Create the error with `reason` as its text."""
        super().__init__(reason)
        self.is_transient = is_transient


class TooLongAnswerError(UnreachableError):
    """The body of a response, or of several responses together, is longer than the limit."""


class BodyLimit:
    """The number of bytes that the bodies of one or several responses may have."""

    __slots__ = ("bytes_max", "left")

    def __init__(self, bytes_max: int) -> None:
        """Allow `bytes_max` bytes."""
        self.bytes_max = self.left = bytes_max

    def count(self, size: int) -> None:
        """Count `size` bytes of a body. Raises TooLongAnswerError if the limit is exceeded."""
        self.left -= size
        if self.left < 0:
            size_max = f"{self.bytes_max >> 20} MiB"
            raise TooLongAnswerError(f"the connection failed: the answer has more than {size_max}")


# Called when a response begins; returns the limit of its body.
NewBodyLimit = Callable[[], BodyLimit]


class HttpResponse(Struct):
    """A response; `date` and `retry_after` are the Date and Retry-After headers, "" if absent.

    If the response has the header Fairlead-Time, `date` is the value of this header.
    """

    status: int = 0
    date: str = ""
    retry_after: str = ""
    body: bytes = b""


# Called with the response to a request, or with an UnreachableError or TimeoutError.
OnEnd = Callable[[HttpResponse | Exception], None]


class HttpConnection(asyncio.Protocol):
    """One connection, which has at most one request in flight."""

    def __init__(
        self, new_limit: NewBodyLimit, read_seconds_max: float, clock: Callable[[], float]
    ) -> None:
        """Start without a transport; `clock` returns the loop's time in seconds.

        A request fails if the body of its response is longer than the limit that `new_limit`
        returns. A request without a deadline fails if no byte of the response arrives for
        `read_seconds_max` seconds.
        """
        self.is_closed = False
        self.has_response_bytes = False  # of the response to the last request
        self.tls: ssl.SSLContext | None = None
        self.deadline = 0.0  # of the request in flight, in the loop's time
        self._new_limit = new_limit
        self._limit = new_limit()
        self._read_seconds_max = read_seconds_max
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._on_end: OnEnd | None = None  # None: no request is in flight
        self._is_extended = False  # whether each part of the response extends the deadline
        self._parser = httptools.HttpResponseParser(self)
        self._response = HttpResponse()
        self._complete: HttpResponse | None = None
        self._chunks: list[bytes] = []
        self._head_size = 0
        self._is_body = False  # whether the head of the response is complete
        self._has_end = False  # whether the response states where its body ends
        self._encoding = b""

    def send(self, request: bytes, on_end: OnEnd, deadline: float | None) -> None:
        """Send a request; `on_end` receives the response or an exception.

        At `deadline`, a time of the event loop, HttpPool ends the request with a TimeoutError. If
        `deadline` is None, HttpPool ends the request when no byte of the response has arrived for
        `read_seconds_max` seconds.
        """
        assert self._transport is not None
        self._on_end = on_end
        self.has_response_bytes = False
        # Otherwise, if the connection closes now, the previous response would be delivered again.
        self._begin_response()
        self._is_extended = deadline is None
        self.deadline = self._clock() + self._read_seconds_max if deadline is None else deadline
        self._transport.write(request)

    def fail(self, cause: Exception) -> None:
        """Fail the request in flight with the exception `cause`, and close the connection."""
        on_end, self._on_end = self._on_end, None
        self.abort()
        if on_end is not None:
            on_end(cause)

    def abort(self) -> None:
        """Close the connection immediately."""
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    def _begin_response(self) -> None:
        self._response = HttpResponse()
        self._chunks, self._head_size, self._limit = [], 0, self._new_limit()
        self._is_body = self._has_end = False
        self._encoding = b""

    def _fail(self, problem: str) -> None:
        self.fail(UnreachableError(f"the connection failed: {problem}"))

    # --- asyncio.Protocol ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's class is not a subclass of asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a response; if no request is in flight, close the connection."""
        if self._on_end is None:
            self.abort()
            return
        self.has_response_bytes = True
        if self._is_extended:
            self.deadline = self._clock() + self._read_seconds_max
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as cause:
            if self._complete is None:
                self._fail(f"the answer is not HTTP ({cause})")
            self.abort()
        if not self._is_body:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES_MAX:
                self._fail(f"the head of the answer has more than {HEAD_BYTES_MAX >> 20} MiB")
        self._deliver()

    def connection_lost(self, cause: Exception | None) -> None:
        """Fail the request, unless the end of the connection marks the end of the body."""
        self.is_closed = True
        if self._on_end is None:
            return
        if self._response.status >= 200 and not self._has_end and cause is None:
            self.on_message_complete()
            self._deliver()
            return
        text = f"the connection failed: {cause or 'the server closed it'}"
        was_closed = cause is None or isinstance(cause, ConnectionResetError)
        self.fail(UnreachableError(text, is_transient=was_closed and not self.has_response_bytes))

    def _deliver(self) -> None:
        """Pass a complete response to `on_end`, which may send the next request during the call."""
        response, self._complete = self._complete, None
        on_end = self._on_end
        if response is not None and on_end is not None:
            self._on_end = None
            on_end(response)

    # --- httptools -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start to collect a response; a second response to one request closes the connection."""
        if self._complete is not None:
            self.abort()
        self._begin_response()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the header if it is a field of HttpResponse or describes the body."""
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_end = True
            case b"content-encoding":
                self._encoding = value.strip().lower()
            # `fairlead up` sends its virtual time in the header Fairlead-Time. This header comes
            # after the header Date, and replaces its value here.
            case b"date" | b"fairlead-time":
                self._response.date = value.decode("latin-1")
            case b"retry-after":
                self._response.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the HTTP status."""
        self._response.status = self._parser.get_status_code()
        self._is_body = True

    def on_body(self, body: bytes) -> None:
        """Store a part of the body; fail the request if the body is too long."""
        self._chunks.append(body)
        try:
            self._limit.count(len(body))
        except TooLongAnswerError as cause:
            self._chunks = []
            self.fail(cause)

    def on_message_complete(self) -> None:
        """Keep the complete response for `_deliver`; ignore a 1xx response."""
        response = self._response
        if response.status < 200 or self._on_end is None or self._complete is not None:
            return
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        try:
            response.body = decompressed(body, self._encoding, self._limit)
        except ValueError as problem:
            self._fail(str(problem))
            return
        except TooLongAnswerError as cause:
            self.fail(cause)
            return
        if not self._parser.should_keep_alive():
            self.abort()
        self._complete = response


def decompressed(body: bytes, encoding: bytes, limit: BodyLimit) -> bytes:
    """Return the decoded `body`; `encoding` is its Content-Encoding.

    `encoding` must be gzip, x-gzip, identity or "". The caller must have added the bytes of `body`
    to the count of `limit`. This function subtracts these bytes again, and adds the size of the
    result. Raises ValueError if `encoding` has another value or `body` is damaged. Raises
    TooLongAnswerError if the result is longer than `limit` permits.
    """
    if not body or encoding in (b"", b"identity"):
        return body
    if encoding not in (b"gzip", b"x-gzip"):
        raise ValueError(
            f"the answer has the unknown Content-Encoding {encoding.decode('latin-1')!r}"
        )
    limit.left += len(body)
    parts: list[bytes] = []
    while body:
        stream = zlib.decompressobj(wbits=_GZIP)
        while not stream.eof:
            try:
                part = stream.decompress(body, min(_STEP_BYTES, limit.left + 1))
            except zlib.error as cause:
                raise ValueError(f"the answer is not gzip ({cause})") from None
            parts.append(part)
            try:
                limit.count(len(part))
            except TooLongAnswerError:
                del part  # the traceback of the exception keeps this frame's variables alive
                parts.clear()
                raise
            body = stream.unconsumed_tail
            if not part and not body and not stream.eof:
                raise ValueError("the gzip data of the answer has no end")
        body = stream.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)
