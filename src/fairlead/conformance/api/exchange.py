"""Exchange: one recorded request and its response."""

from __future__ import annotations

import base64
import json
import re
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.api.placeholder import PlaceholderValues, has_placeholder, same_form

Query = tuple[tuple[str, str], ...]

_BIG: Final = re.compile(r'ConfigMap (\w+), data\.(\w+) = "(\w)" x (\d+)')
_WORD: Final = re.compile(r"[\w.-]+")
_TOO_BIG: Final = 3 * 1024 * 1024 + 1024


class NotReplayableError(Exception):
    """The recording does not contain the request body."""


class ReplayRequest(Struct, frozen=True, kw_only=True):
    """A request of a replay; if `user` is None, the request has no credentials."""

    method: str
    path: str
    query: Query
    headers: dict[str, str]
    body: bytes
    user: str | None

    @property
    def timeout_s(self) -> float | None:
        """The `timeoutSeconds` of a watch request; None if the request does not set it."""
        for name, value in self.query:
            if name == "timeoutSeconds" and value.isdecimal():
                return float(value)
        return None


class Exchange(Struct, frozen=True):
    """One step of a case: a recorded request and its response."""

    step: Json

    @property
    def is_setup(self) -> bool:
        """Whether this is a setup step, which only has to succeed."""
        return bool(self.step.get("setup"))

    @property
    def is_watch(self) -> bool:
        """Whether the response is the event stream of a watch."""
        return bool(self.step.get("watch"))

    @property
    def at_ms(self) -> int:
        """The time at which the request was sent, in ms after the start of the case."""
        found: int = self.step.get("at_ms", 0)
        return found

    @property
    def answer(self) -> Json:
        """The recorded response; its status is absent or None if the server did not respond."""
        found: Json = self.step["response"]
        return found

    def request(self, bindings: PlaceholderValues, default_user: str | None) -> ReplayRequest:
        """Return the request to send, with values instead of placeholders.

        `bindings` contains the values of placeholders; placeholders without a value get a new
        value. `default_user` is the user of a step that does not state its user; None means no
        credentials. Raises NotReplayableError if the body was not recorded.
        """
        recorded = self.step["request"]
        _bind_names(bindings, recorded["path"], recorded["body"])
        return ReplayRequest(
            method=recorded["method"],
            path=bindings.filled(recorded["path"]),
            query=tuple((key, str(value)) for key, value in bindings.filled(recorded["query"])),
            headers=bindings.filled(recorded["headers"]),
            body=_body(bindings, recorded["body"]),
            user=self._user(default_user),
        )

    def _user(self, default_user: str | None) -> str | None:
        """Return the user of the request; None if the request had no credentials.

        If neither the exchange nor `default_user` names a user, and the recorded status is 401,
        return "bad". Such a request had invalid credentials, which are not in the recording.
        """
        user: str | None = self.step.get("as", default_user)
        return "bad" if user is None and self.answer.get("status") == 401 else user


def _bind_names(bindings: PlaceholderValues, path: str, body: object) -> None:
    """Bind the placeholders in `path` to the names in `body` if `body` is protobuf.

    A protobuf body is sent with the recorded names, so the path must contain the same names.
    """
    match body:
        case {"$protobuf": {"b64": str(text)}}:
            words = _WORD.findall(base64.b64decode(text).decode("latin-1"))
        case _:
            return
    for segment in filter(has_placeholder, path.split("/")):
        for word in words:
            if same_form(segment, word):
                bindings.matches(segment, word)
                break


def _body(bindings: PlaceholderValues, body: object) -> bytes:
    match body:
        case None:
            return b""
        case {"$text": str(text)}:
            return str(bindings.filled(text)).encode()
        case {"$protobuf": {"b64": str(text)}}:
            return base64.b64decode(text)
        case {"$protobuf": _}:
            raise NotReplayableError("the bytes of a protobuf body were not recorded")
        case {"$note": str(note)}:
            return _described(note)
        case _:
            return json.dumps(bindings.filled(body), ensure_ascii=False).encode()


def _described(note: str) -> bytes:
    """Generate the request body that `note` describes.

    The recording contains a note in place of a body that was too large.
    """
    found = _BIG.fullmatch(note)
    if found is None:
        return b'"%s"' % (b"x" * _TOO_BIG)
    name, key, letter, count = found.groups()
    big = {"metadata": {"name": name}, "data": {key: letter * int(count)}}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **big}).encode()
