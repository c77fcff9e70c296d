"""Formats JSON responses: HTML-escaped, and either on one line or indented.

Objects are indented for `?pretty=true`, and by default for curl, wget and browsers. A Status is
also indented if the client does not accept plain objects. Such a client sends an Accept header in
which each clause has an unsupported media type or requests a view, such as a Table.

upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go:isPrettyPrint, handlers/
responsewriters/writers.go:WriteObjectNegotiated,
apimachinery/pkg/runtime/serializer/json/json.go:doEncode
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from fairlead.apiserver.negotiation.media_type import accepts_objects
from fairlead.apiserver.request import Response

_JSON: Final = "application/json"
_OBJECTS: Final = (b'{"kind":', b'{"apiVersion":')
_STATUS: Final = b'{"kind":"Status",'
_SPECIAL: Final = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
_ALWAYS: Final = ("/version", "/version/")
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_INTERACTIVE_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
_INDENT: Final = 2


def formatted_body(
    response: Response, path: str, pretty: str, headers: Mapping[str, str]
) -> Iterator[bytes]:
    """Return the parts of the formatted body; `pretty` is the query parameter, "" if missing."""
    parts = iter(response.body)
    first = next(parts, b"")
    parts = chain((first,), parts)
    if not first or not response.content_type.startswith(_JSON):
        return parts
    if not first.startswith(_OBJECTS):
        return _indented(parts) if path in _ALWAYS else parts
    parts = map(_escaped, parts)
    if response.content_type == _JSON and _is_pretty(pretty, headers.get("user-agent", "")):
        return _indented(parts)
    if first.startswith(_STATUS) and not accepts_objects(headers.get("accept", "")):
        return _indented(parts)
    return chain(parts, (b"\n",))


def _is_pretty(pretty: str, agent: str) -> bool:
    return pretty in _TRUE if pretty else agent.startswith(_INTERACTIVE_AGENTS)


def _escaped(part: bytes) -> bytes:
    """Return JSON text with `<`, `>`, `&`, U+2028 and U+2029 escaped, as Go writes it."""
    # upstream: encoding/json/indent.go:appendHTMLEscape
    if b"<" in part or b">" in part or b"&" in part or b"\xe2" in part:
        for mark, written in _SPECIAL:
            part = part.replace(mark, written)
    return part


def _indented(parts: Iterable[bytes]) -> Iterator[bytes]:
    yield msgspec.json.format(b"".join(parts), indent=_INDENT)
