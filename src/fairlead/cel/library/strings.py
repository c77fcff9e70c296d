"""Functions on strings; positions count characters, not bytes.

upstream: cel-go's ext/strings.go, apiserver/pkg/cel/library/jsonpatch.go
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from fairlead.cel.cost.runtime_cost import TEXT_COST, CostTracker
from fairlead.cel.function import Function, free, member, scan, scan_twice, traverse
from fairlead.cel.library.format import formatted
from fairlead.cel.value import INT_MAX

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# Go's white space: unicode.IsSpace
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def _char_at(text: str, at: int) -> str:
    _require_place(at, len(text))
    return text[at : at + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")
    _require_place(start, len(text))
    _require_place(stop, len(text))
    return text[start:stop]


def _require_place(at: int, size: int) -> None:
    if not 0 <= at <= size:
        raise ValueError(f"index out of range: {at}")


def _first_from(text: str, wanted: str, start: int = 0) -> int:
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    return text.find(wanted, start) if start < len(text) or not wanted else -1


def _last_to(text: str, wanted: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(wanted)
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    if not wanted:
        return start
    return text.rfind(wanted, 0, start + len(wanted)) if start < len(text) else -1


def _replaced(tracker: CostTracker, text: str, old: str, new: str, limit: int = -1) -> str:
    limit = -1 if limit < 0 else min(limit, INT_MAX)
    count = text.count(old) if limit else 0
    count = count if limit < 0 else min(count, limit)
    tracker.write(len(text) + count * max(len(new) - len(old), 0))
    return text.replace(old, new, limit)


def _split(tracker: CostTracker, text: str, separator: str, limit: int = -1) -> list[str]:
    """Return the parts of `text` between separators, but at most `limit` parts.

    If the text has more parts, the last returned part contains the rest of the text. A negative
    `limit` means that the number of parts is not limited.
    """
    if not limit:
        return []
    tracker.add_work(text.count(separator))
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return [*text] or [""]


def _joined(tracker: CostTracker, items: list[Any], separator: str = "") -> str:
    if not all(type(one) is str for one in items):
        raise ValueError("no such overload")
    size = sum(map(len, items)) + len(separator) * max(len(items) - 1, 0)
    tracker.charge(ceil(size * 2 * TEXT_COST))
    tracker.write(size)
    return separator.join(items)


def _quote(text: str) -> str:
    return f'"{"".join(_QUOTED.get(one, one) for one in text)}"'


def _escaped_key(key: str) -> str:
    """Return `key` escaped for a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _nothing(*_: Any) -> int:
    return 0


FUNCTIONS: Final[tuple[Function, ...]] = (
    member("charAt", (str, int), _char_at),
    member("substring", (str, int), _substring, scan),
    member("substring", (str, int, int), _substring, scan),
    member("indexOf", (str, str), _first_from, traverse),
    member("indexOf", (str, str, int), _first_from, traverse),
    member("lastIndexOf", (str, str), _last_to, traverse),
    member("lastIndexOf", (str, str, int), _last_to, traverse),
    member("replace", (str, str, str), _replaced, scan_twice, is_metered=True),
    member("replace", (str, str, str, int), _replaced, scan_twice, is_metered=True),
    member("split", (str, str), _split, scan_twice, is_metered=True),
    member("split", (str, str, int), _split, scan_twice, is_metered=True),
    member("join", (list,), _joined, _nothing, is_metered=True),
    member("join", (list, str), _joined, _nothing, is_metered=True),
    member("lowerAscii", (str,), lambda text: text.translate(_LOWER), scan),
    member("upperAscii", (str,), lambda text: text.translate(_UPPER), scan),
    member("trim", (str,), lambda text: text.strip(_SPACE), scan),
    member("format", (str, list), formatted, scan, is_metered=True),
    free("strings.quote", (str,), _quote, scan),
    free("jsonpatch.escapeKey", (str,), _escaped_key, scan),
)
