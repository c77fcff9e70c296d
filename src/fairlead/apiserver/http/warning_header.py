"""Warning headers of a response.

Duplicates are dropped, and so are warnings with control characters. A warning can quote a field
name of the client's object, and a newline in this name would start another header. If the remaining
warnings have more than 4,096 characters together, each of them is cut to 256 characters. If they
still have more than 4,096 characters, the last warnings are dropped. At most WARNINGS_MAX warnings
are sent, because some clients fail on a response with more than 100 headers.

upstream: apiserver/pkg/endpoints/filters/warning.go:AddWarning,
apimachinery/pkg/util/net/http.go:NewWarningHeader
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from unicodedata import category

TOTAL_CHARACTERS_MAX: Final = 4 * 1024
CUT_CHARACTERS: Final = 256
WARNINGS_MAX: Final = 64


def warning_headers(texts: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return the Warning headers for `texts` in order, as pairs of name and value."""
    shown = [text for text in dict.fromkeys(texts) if text and not _has_controls(text)]
    if sum(map(len, shown)) > TOTAL_CHARACTERS_MAX:
        shown = list(_within(text[:CUT_CHARACTERS] for text in shown))
    return [(b"warning", _header(text).encode()) for text in shown[:WARNINGS_MAX]]


def _has_controls(text: str) -> bool:
    return not text.isprintable() and any(category(one) == "Cc" for one in text)


def _within(texts: Iterable[str]) -> Iterator[str]:
    total = 0
    for text in texts:
        total += len(text)
        if total > TOTAL_CHARACTERS_MAX:
            return
        yield text


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
