"""Exchange: one recorded request with its answer, as a replay uses it."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.api.comparison.placeholder import Bindings, has_placeholder, same_form

Query = tuple[tuple[str, str], ...]

_BIG: Final = re.compile(r'ConfigMap (\w+), data\.(\w+) = "(\w)" x (\d+)')
_WORD: Final = re.compile(r"[\w.-]+")
_TOO_BIG: Final = 3 * 1024 * 1024 + 1024


class NotReplayableError(Exception):
    """The recording does not say what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request of a replay; `user` None asks without credentials."""

    method: str
    path: str
    query: Query
    headers: dict[str, str]
    body: bytes
    user: str | None

    @property
    def timeout_s(self) -> float | None:
        """How long a watch may last, None where the client did not say."""
        for name, value in self.query:
            if name == "timeoutSeconds" and value.isdecimal():
                return float(value)
        return None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A step of a case."""

    step: Json

    @property
    def is_setup(self) -> bool:
        """Whether it only prepares; what matters is that it can be done."""
        return bool(self.step.get("setup"))

    @property
    def is_watch(self) -> bool:
        """Whether its answer is a stream."""
        return bool(self.step.get("watch"))

    @property
    def at_ms(self) -> int:
        """When it was sent, after the begin of the case."""
        found: int = self.step.get("at_ms", 0)
        return found

    @property
    def answer(self) -> Json:
        """What was recorded; without a status where no answer came."""
        found: Json = self.step["response"]
        return found

    def asking(self, bindings: Bindings, default_user: str | None) -> Asking:
        """The request to send. Raises NotReplayableError when its body was not recorded."""
        request = self.step["request"]
        _bind_names(bindings, request["path"], request["body"])
        return Asking(
            method=request["method"],
            path=bindings.filled(request["path"]),
            query=tuple((key, str(value)) for key, value in bindings.filled(request["query"])),
            headers=bindings.filled(request["headers"]),
            body=_body(bindings, request["body"]),
            user=self._user(default_user),
        )

    def _user(self, default_user: str | None) -> str | None:
        """Who asked. Credentials that were refused are not in the recording; any bad ones do."""
        user: str | None = self.step.get("as", default_user)
        return "bad" if user is None and self.answer.get("status") == 401 else user


def _bind_names(bindings: Bindings, path: str, body: object) -> None:
    """Let the placeholders in `path` be what a body in protobuf has there: it is sent as it was."""
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


def _body(bindings: Bindings, body: object) -> bytes:
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
    """A body too large for the recording, from its description."""
    found = _BIG.fullmatch(note)
    if found is None:
        return b'"%s"' % (b"x" * _TOO_BIG)
    name, key, letter, count = found.groups()
    big = {"metadata": {"name": name}, "data": {key: letter * int(count)}}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **big}).encode()
