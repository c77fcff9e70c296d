"""Validators: replaces the ETags and hashes in recorded requests by those of the server in use."""

from __future__ import annotations

import json
import re
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.conformance.api.exchange import Exchange, ReplayRequest
from fairlead.conformance.api.transport import HttpAnswer, Transport

_DIGEST: Final = re.compile(r'"?[0-9A-F]{128}"?|<etag>')
_IF_NONE_MATCH: Final = "if-none-match"
_HASH: Final = "hash"
_INDEX: Final = "/openapi/v3"


class Validators(Struct):
    """The ETags of earlier responses, by request path."""

    _tags: dict[str, str] = field(default_factory=dict)

    def remember(self, request: ReplayRequest, answer: HttpAnswer) -> None:
        """Remember the ETag that `answer` contains; `answer` is the response to `request`."""
        for tag in answer.values("etag"):
            self._tags[request.path] = tag

    def translated(
        self, request: ReplayRequest, exchange: Exchange, transport: Transport
    ) -> ReplayRequest:
        """Return `request` with the server's ETags and hashes instead of the recorded ones.

        `exchange` is the recording of `request`. A recorded ETag is kept if `remember` has stored
        no ETag for the path. If the recorded status is 304, the result has the stored ETag even if
        `request` has no ETag. If the recorded status is 200 and the query contains the hash of an
        OpenAPI document, the result has the document's hash from the server's OpenAPI index.
        """
        headers = {
            name: self._tags.get(request.path, value)
            if name.lower() == _IF_NONE_MATCH and _DIGEST.fullmatch(value)
            else value
            for name, value in request.headers.items()
        }
        if exchange.answer.get("status") == 304 and request.path in self._tags:
            # A 304 response shows that the client sent the ETag, even if the recording does not
            # have it.
            headers = {**headers, "If-None-Match": self._tags[request.path]}
        request = replace(request, headers=headers)
        is_current = exchange.answer.get("status") == 200
        if is_current and any(_is_hash(name, value) for name, value in request.query):
            ours = _hash_of(request, transport)
            query = tuple((n, ours or v if _is_hash(n, v) else v) for n, v in request.query)
            return replace(request, query=query)
        return request


def _is_hash(name: str, value: str) -> bool:
    return name == _HASH and _DIGEST.fullmatch(value) is not None


def _hash_of(request: ReplayRequest, transport: Transport) -> str:
    """Return the current hash of the requested OpenAPI document, from the server's index.

    Returns "" if the index does not list the document.
    """
    index = json.loads(transport.ask(replace(request, path=_INDEX, query=())).body)
    entry = index.get("paths", {}).get(request.path.removeprefix(f"{_INDEX}/"), {})
    return str(entry.get("serverRelativeURL", "")).rpartition("=")[2]
