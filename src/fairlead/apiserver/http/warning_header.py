"""Warning headers: what a client is told besides its answer.

Each warning is told once. Clients read headers up to some length only, so that all of them together
stay within 4,096 characters: where they would not, each is cut to 256, and those that still have
no room are left out. A warning with control characters in it (names of fields are warned of as
they were sent) would end its header and begin another; it is left out, too.

upstream: apiserver/pkg/endpoints/filters/warning.go:AddWarning,
apimachinery/pkg/util/net/http.go:NewWarningHeader
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from unicodedata import category

TOTAL_CHARACTERS_MAX: Final = 4 * 1024
CUT_CHARACTERS: Final = 256


def warning_headers(texts: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """The headers that tell `texts`, in their order."""
    told = [text for text in dict.fromkeys(texts) if text and not _has_controls(text)]
    if sum(map(len, told)) > TOTAL_CHARACTERS_MAX:
        told = list(_within(text[:CUT_CHARACTERS] for text in told))
    return [(b"warning", _header(text).encode()) for text in told]


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
