"""Times in expressions: texts whose type says that they are instants or durations.

The library takes no instants from us, so that an expression makes them itself: where it names a
field that holds some, `self` is bound to the same value with times in place of texts. Times that
are values of maps stay texts.

upstream: apiserver/pkg/cel/common/values.go:UnstructuredToVal
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.apiextensions.cel.escaped_name import spelled
from fairlead.apiserver.apiextensions.schema.structural import Structural
from fairlead.cel.library import KEPT_CHARACTERS_MAX

TEXTS_CACHED_MAX: Final = 1_024
_MADE: Final = {
    "date-time": "timestamp({0})",
    "date": "timestamp({0} + 'T00:00:00Z')",
    "duration": "duration({0})",
}
_OLD: Final = re.compile(r"\boldSelf\b")
_NAME: Final = re.compile(r"\w+")
_SAYABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@text_cache(maxsize=TEXTS_CACHED_MAX, characters_max=KEPT_CHARACTERS_MAX)
def with_times(schema: Structural, expression: str) -> str:
    """`expression`, about a value of this type, with its times made."""
    named = set(_names(schema, "self"))
    if named.isdisjoint(_NAME.findall(expression)):
        return expression
    text = f"cel.bind(self, {_made(schema, 'self', 0)}, {expression})"
    if _OLD.search(expression):
        old = _made(schema, "oldSelf", 0)
        text = f"cel.bind(oldSelf, oldSelf == null ? null : {old}, {text})"
    return text


def _names(schema: Structural, name: str) -> Iterator[str]:
    """What the fields with times are called, as expressions say it."""
    if _is_time(schema):
        yield name
    if schema.items is not None:
        yield from _names(schema.items, name)
    for own, inner in schema.properties.items():
        yield from _names(inner, spelled(own))


def _is_time(schema: Structural) -> bool:
    return schema.type == "string" and schema.raw.get("format") in _MADE


def _made(schema: Structural, value: str, depth: int) -> str:
    """An expression for `value` with times."""
    if not any(_names(schema, "-")):
        return value
    text = f"dyn({_with_times_inside(schema, value, depth)})"
    return f"({value} == null ? null : {text})" if schema.is_nullable else text


def _with_times_inside(schema: Structural, value: str, depth: int) -> str:
    if _is_time(schema):
        return _MADE[schema.raw["format"]].format(value)
    one = f"v{depth}_"
    if schema.items is not None:
        return f"{value}.map({one}, {_made(schema.items, one, depth + 1)})"
    entries = []
    for name, inner in schema.properties.items():
        called = spelled(name)
        if not _SAYABLE.fullmatch(called):
            continue
        made = _made(inner, one, depth + 1)
        change = "" if made == one else f".optMap({one}, {made})"
        entries.append(f"?'{called}': {value}.?{called}{change}")
    return f"{{{', '.join(entries)}}}"
