"""Continue tokens of paged lists.

A token is a version and the first key of the next page, as JSON in base64 without padding. A
malformed token is refused with the errors of Go's decoders, which upstream passes on.

upstream: apiserver/pkg/storage/continue.go, encoding/base64/base64.go
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import normpath
from string import ascii_letters, digits
from typing import Any, Final

import msgspec

from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.schema.gojson.json_text import JsonError, json_kind, parse_json

FORMAT: Final = "meta.k8s.io/v1"
NOW: Final = -1
_INVALID: Final = "invalid continue token: continue key is not valid: "
_ALPHABET: Final = frozenset(f"{ascii_letters}{digits}-_")
_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
_WHOLE: Final = 4
# The members of a token: their types here, and in Go.
_MEMBERS: Final[dict[str, tuple[type, str]]] = {
    "v": (str, "string"),
    "rv": (int, "int64"),
    "start": (str, "string"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """The next page starts at key `start` (inclusive), at `version` (or NOW)."""

    version: int
    start: str


def encoded(token: Token) -> str:
    """The token as text for the client."""
    text = msgspec.json.encode({"v": FORMAT, "rv": token.version, "start": token.start})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decoded(text: str) -> Token:
    """Decodes a token; its start loses the leading slash. Raises ApiError 400."""
    at = _first_fault(text)
    if at is not None:
        raise bad_request(f"{_INVALID}illegal base64 data at input byte {at}")
    plain = text.translate(_LINE_ENDS)
    padded = plain + "=" * (-len(plain) % _WHOLE)
    try:
        content = parse_json(base64.urlsafe_b64decode(padded))
    except JsonError as cause:
        raise bad_request(f"{_INVALID}{cause}") from None
    for problem in _mistyped(content):
        raise bad_request(f"{_INVALID}json: cannot unmarshal {problem}")
    return _checked(content or {})


def _first_fault(text: str) -> int | None:
    """The offset of the first byte that is not base64, None if there is none."""
    encoded_text = text.encode("latin-1", "replace").decode("latin-1")
    for at, mark in enumerate(encoded_text):
        if mark not in _ALPHABET and mark not in "\r\n":
            return at
    # A single last character encodes only six bits.
    return len(text) - 1 if len(text.translate(_LINE_ENDS)) % _WHOLE == 1 else None


def _mistyped(content: Any) -> Iterator[str]:
    """The members with a wrong type; null is allowed everywhere."""
    if content is None:
        return
    if not isinstance(content, dict):
        yield f"{json_kind(content)} into Go value of type storage.continueToken"
        return
    for name, value in content.items():
        wanted, called = _MEMBERS.get(name, (object, ""))
        if value is None or (isinstance(value, wanted) and not _is_truth(value, wanted)):
            continue
        is_fraction = wanted is int and isinstance(value, float)
        shown = f"number {value}" if is_fraction else json_kind(value)
        yield f"{shown} into Go struct field continueToken.{name} of type {called}"


def _is_truth(value: Any, wanted: type) -> bool:
    return wanted is int and isinstance(value, bool)


def _checked(content: dict[str, Any]) -> Token:
    written, version = content.get("v") or "", content.get("rv") or 0
    start: str = content.get("start") or ""
    if written != FORMAT:
        raise bad_request(f"{_INVALID}server does not recognize this encoded version {written}")
    if version == 0:
        text = f"incorrect encoded start resourceVersion (version {FORMAT})"
        raise bad_request(_INVALID + text)
    if not start:
        raise bad_request(f"{_INVALID}encoded start key empty (version {FORMAT})")
    key = start if start.startswith("/") else f"/{start}"
    if _cleaned(key) != key:
        raise bad_request(_INVALID + start)
    return Token(version, key[1:])


def _cleaned(key: str) -> str:
    """`key` as Go's path.Clean returns it; Python's normpath keeps a leading double slash."""
    return normpath(key.replace("//", "/", 1)) if key.startswith("//") else normpath(key)


def token_too_old(token: Token, why: str) -> ApiError:
    """410: the token's version is gone; the error has a token that continues with the present."""
    fresh = encoded(Token(NOW, token.start))
    return ApiError("Expired", 410, why, continue_token=fresh)
