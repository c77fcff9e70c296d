"""Layout: how the text of an answer stands on the page.

Objects end with the end of a line. Who asks for it, and who reads with their own eyes, gets them
laid out over several lines, which end with nothing.

upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go:isPrettyPrint,
apimachinery/pkg/runtime/serializer/json/json.go:doEncode
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.apiserver.request import Response

_JSON: Final = "application/json"
_OBJECTS: Final = (b'{"kind":', b'{"apiVersion":')
_ALWAYS: Final = ("/version", "/version/")
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_READERS: Final = ("curl", "Wget", "Mozilla/5.0")
_INDENT: Final = 2


def laid_out(
    response: Response, path: str, pretty: str, headers: Mapping[str, str]
) -> tuple[bytes, ...]:
    """The body of `response` to a request, in parts; `pretty` is a parameter, "" if not given."""
    parts = response.body
    if not parts or not response.content_type.startswith(_JSON):
        return parts
    if path in _ALWAYS:
        return _indented(parts)
    if not parts[0].startswith(_OBJECTS):
        return parts
    if response.content_type == _JSON and _is_for_eyes(pretty, headers.get("user-agent", "")):
        return _indented(parts)
    return (*parts, b"\n")


def _is_for_eyes(pretty: str, agent: str) -> bool:
    return pretty in _TRUE if pretty else agent.startswith(_READERS)


def _indented(parts: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return (msgspec.json.format(b"".join(parts), indent=_INDENT),)
