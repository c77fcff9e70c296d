"""Rewrites the typed literals of mutating policies as CEL map literals.

    Object{spec: Object.spec{replicas: 3}}    {"spec": {"replicas": 3}}
    JSONPatch{op: "remove", path: "/spec"}    {"op": "remove", "path": "/spec"}
    jsonpatch.escapeKey(key)                  (key).replace("~", "~0").replace("/", "~1")

The CEL evaluator has no message types, and maps behave the same here. Field names that are not
identifiers are escaped in expressions (`__dash__`, ...).

upstream: apiserver/pkg/cel/mutation/{typeresolver,jsonpatch}.go, apiserver/pkg/cel/escaping.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlead.api.text.text_cache import text_cache
from fairlead.cel.library import KEPT_CHARACTERS_MAX

CACHE_SIZE: Final = 1_024
_TOKEN: Final = re.compile(
    r"""
    (?P<text>[rRbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<escape>\bjsonpatch\.escapeKey\s*\()
    |(?P<type>(?<![.\w])(?:Object(?:\.\w+)*|JSONPatch)\s*(?=\{))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>[{}()\[\],])
    |(?P<rest>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE_CALLS: Final = ').replace("~", "~0").replace("/", "~1")'
_ESCAPES: Final = {
    "__dot__": ".",
    "__dash__": "-",
    "__slash__": "/",
    "__underscores__": "__",
}
_ESCAPED_KEYWORD: Final = re.compile(r"__([a-z]+)__")
_COLON: Final = re.compile(r"\s*:")
_OPENING: Final = {"{": "}", "(": ")", "[": "]"}


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def with_map_literals(expression: str) -> str:
    """`expression` with map literals in place of object literals."""
    return "".join(_rewritten(expression))


def _rewritten(expression: str) -> Iterator[str]:
    # What each open bracket contains: fields of an object, a key to escape, or anything else.
    open_brackets: list[str] = []
    is_object = begins_entry = False
    for token in _TOKEN.finditer(expression):
        kind, text = token.lastgroup or "", token.group()
        if kind == "type":
            is_object = True
            continue
        if kind == "escape":
            open_brackets.append("key")
            yield "("
        elif kind == "name" and begins_entry and _is_field(expression, token.end()):
            yield f'"{_unescaped_name(text)}"'
        elif kind == "mark" and text in _OPENING:
            open_brackets.append("object" if is_object else "")
            yield text
        elif kind == "mark" and text != ",":
            closed = open_brackets.pop() if open_brackets else ""
            yield _ESCAPE_CALLS if closed == "key" else text
        else:
            yield text
        is_inside = bool(open_brackets) and open_brackets[-1] == "object"
        if not text.isspace() and text != "?":
            begins_entry = is_inside and text in ("{", ",")
        is_object = False


def _is_field(expression: str, position: int) -> bool:
    return _COLON.match(expression, position) is not None


def _unescaped_name(name: str) -> str:
    """The field name that an escaped identifier stands for."""
    wrapped = _ESCAPED_KEYWORD.fullmatch(name)
    if wrapped and name not in _ESCAPES:
        return wrapped[1]
    for escape, mark in _ESCAPES.items():
        name = name.replace(escape, mark)
    return name
