"""Validators: ETags and hashes of documents, which differ from server to server.

Requests were recorded with those that the recorded server had told; a replay sends our own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.conformance.api.replay.exchange import Asking, Exchange
from fairlead.conformance.api.replay.transport import Answer, Transport

_DIGEST: Final = re.compile(r'"?[0-9A-F]{128}"?|<etag>')
_IF_NONE_MATCH: Final = "if-none-match"
_HASH: Final = "hash"
_INDEX: Final = "/openapi/v3"


@dataclass(slots=True)
class Validators:
    """What our server has told so far."""

    _tags: dict[str, str] = field(default_factory=dict)

    def remember(self, asking: Asking, answer: Answer) -> None:
        """Keep the ETag of an answer."""
        for tag in answer.values("etag"):
            self._tags[asking.path] = tag

    def translated(self, asking: Asking, exchange: Exchange, transport: Transport) -> Asking:
        """`asking` with our own validators in the place of recorded ones that still held."""
        headers = {
            name: self._tags.get(asking.path, value)
            if name.lower() == _IF_NONE_MATCH and _DIGEST.fullmatch(value)
            else value
            for name, value in asking.headers.items()
        }
        if exchange.answer.get("status") == 304 and asking.path in self._tags:
            # A client that was told that nothing has changed had asked so, recorded or not.
            headers = {**headers, "If-None-Match": self._tags[asking.path]}
        asking = replace(asking, headers=headers)
        is_current = exchange.answer.get("status") == 200
        if is_current and any(_is_hash(name, value) for name, value in asking.query):
            ours = _hash_of(asking, transport)
            query = tuple((n, ours or v if _is_hash(n, v) else v) for n, v in asking.query)
            return replace(asking, query=query)
        return asking


def _is_hash(name: str, value: str) -> bool:
    return name == _HASH and _DIGEST.fullmatch(value) is not None


def _hash_of(asking: Asking, transport: Transport) -> str:
    """The hash of a document, from the index of our server; "" where that does not have it."""
    index = json.loads(transport.ask(replace(asking, path=_INDEX, query=())).body)
    entry = index.get("paths", {}).get(asking.path.removeprefix(f"{_INDEX}/"), {})
    return str(entry.get("serverRelativeURL", "")).rpartition("=")[2]
