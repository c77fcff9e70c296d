"""WebSockets, over which browsers and some client libraries watch objects.

The client sends a watch request with `Upgrade: websocket`. After the handshake, the server sends
each event as one text frame. As upstream, the server sends text for every sub-protocol, ignores the
messages of the client, and refuses a handshake without an Origin header or with several
sub-protocols. A sub-protocol that contains a bearer token does not count.

upstream: golang.org/x/net/websocket/{server,hybi}.go; apiserver/pkg/endpoints/handlers/watch.go
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead.apiserver.auth.authentication.token import subprotocols_without_token

TEXT: Final = 0x1
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA
CLOSE_NORMAL: Final = 1_000
CLOSE_PROTOCOL_ERROR: Final = 1_002
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_CONTROL_BYTES_MAX: Final = 125
_MASK_BYTES: Final = 4
_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
_VERSION: Final = "13"
# upstream: net/url/url.go:ParseRequestURI, which accepts an absolute path, too
_ORIGIN: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:.")

Headers = list[tuple[bytes, bytes]]


class HandshakeError(Exception):
    """A handshake is refused with the status `code` and the body `text`."""

    def __init__(self, code: int, text: str = "", *headers: tuple[str, str]) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def is_upgrade(headers: Mapping[str, str]) -> bool:
    """Return whether a request with these headers asks for a WebSocket."""
    # upstream: apimachinery/pkg/util/httpstream/wsstream/conn.go:IsWebSocketRequest
    is_requested = headers.get("upgrade", "").lower() == "websocket"
    return is_requested and "upgrade" in headers.get("connection", "").lower()


def handshake(headers: Mapping[str, str]) -> Headers:
    """Return the headers of the response that accepts a WebSocket. Raises HandshakeError."""
    key = headers.get("sec-websocket-key", "")
    if not key:
        raise HandshakeError(400, "mismatch challenge/response")
    if headers.get("sec-websocket-version") != _VERSION:
        supported = ("Sec-WebSocket-Version", _VERSION)
        raise HandshakeError(400, "missing or bad WebSocket Version", supported)
    if not _ORIGIN.match(headers.get("origin", "")):
        raise HandshakeError(403)
    chosen = subprotocols_without_token(headers)
    if len(chosen) > 1:
        raise HandshakeError(400, "missing or bad WebSocket-Protocol")
    digest = hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()
    accepted = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", base64.b64encode(digest)),
    ]
    return accepted + [(b"sec-websocket-protocol", name.encode("latin-1")) for name in chosen]


def frame(opcode: int, payload: bytes) -> bytes:
    """Return an unfragmented frame of the server."""
    size = len(payload)
    if size <= _CONTROL_BYTES_MAX:
        length = bytes((size,))
    elif size < 1 << 16:
        length = b"\x7e" + size.to_bytes(2)
    else:
        length = b"\x7f" + size.to_bytes(8)
    return bytes((_FINAL | opcode,)) + length + payload


def close_frame(code: int) -> bytes:
    """Return the frame that closes a WebSocket with the status `code`."""
    return frame(CLOSE, code.to_bytes(2))


def text_frames(lines: Iterable[bytes]) -> bytes:
    """Return `lines` as text frames, one frame per line."""
    return b"".join(frame(TEXT, line) for line in lines)


class FrameError(Exception):
    """The client sent a frame that violates the protocol."""


class FrameReader:
    """Reads the frames of a client; it discards all frames except control frames."""

    def __init__(self) -> None:
        """Expect the first byte of a frame."""
        self._data = bytearray()
        self._skipped = 0  # bytes left of the payload of a frame that is discarded

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the opcode and the payload of each control frame that `data` completes.

        Raises FrameError.
        """
        self._data += data
        while True:
            taken = min(self._skipped, len(self._data))
            del self._data[:taken]
            self._skipped -= taken
            head = None if self._skipped else self._head()
            if head is None:
                return
            opcode, start, size = head
            if opcode < CLOSE:
                del self._data[:start]
                self._skipped = size
                continue
            if size > _CONTROL_BYTES_MAX:
                raise FrameError
            if len(self._data) < start + size:
                return
            mask = self._data[start - _MASK_BYTES : start]
            masked = self._data[start : start + size]
            del self._data[: start + size]
            yield opcode, bytes(byte ^ mask[at % _MASK_BYTES] for at, byte in enumerate(masked))

    def _head(self) -> tuple[int, int, int] | None:
        """Return the opcode of the next frame, the start of its payload, and the payload's size.

        Return None if the head is incomplete. Raises FrameError for a frame without a mask.
        """
        data = self._data
        if len(data) < 2:
            return None
        if not data[1] & _MASKED:
            raise FrameError
        size = data[1] & ~_MASKED
        end = 2 + {126: 2, 127: 8}.get(size, 0)
        if len(data) < end + _MASK_BYTES:
            return None
        if end > 2:
            size = int.from_bytes(data[2:end])
        return data[0] & 0xF, end + _MASK_BYTES, size
