"""Request headers as a mapping.

If a header is repeated, only its first value is used. Exception: the values of repeated
Impersonate-* and Sec-WebSocket-Protocol headers are joined with SEPARATOR.

upstream: net/http's Header.Get; apiserver/pkg/endpoints/filters/impersonation
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.apiserver.request import SEPARATOR

# Repeated headers with these prefixes are lists.
_LISTS: Final = ("impersonate-", "sec-websocket-protocol")


def headers_of(sent: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers in `sent` by name; the names must be in lower case."""
    found = {name.decode("latin-1"): text.decode("latin-1") for name, text in sent}
    return found if len(found) == len(sent) else _gathered(sent)


def _gathered(sent: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    gathered: dict[str, list[str]] = {}
    for name, text in sent:
        gathered.setdefault(name.decode("latin-1"), []).append(text.decode("latin-1"))
    return {
        name: SEPARATOR.join(texts) if name.startswith(_LISTS) else texts[0]
        for name, texts in gathered.items()
    }
