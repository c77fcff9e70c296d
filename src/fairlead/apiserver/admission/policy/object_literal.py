"""Object literals of mutations, as maps: the library has no types to make objects of.

    Object{spec: Object.spec{replicas: 3}}    {"spec": {"replicas": 3}}
    JSONPatch{op: "remove", path: "/spec"}    {"op": "remove", "path": "/spec"}
    jsonpatch.escapeKey(key)                  (key).replace("~", "~0").replace("/", "~1")

Names of fields that are no identifiers are spelled out in expressions (`__dash__`, …).

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
_ESCAPED: Final = ').replace("~", "~0").replace("/", "~1")'
_SPELLED: Final = {
    "__dot__": ".",
    "__dash__": "-",
    "__slash__": "/",
    "__underscores__": "__",
}
_WRAPPED: Final = re.compile(r"__([a-z]+)__")
_COLON: Final = re.compile(r"\s*:")
_OPENING: Final = {"{": "}", "(": ")", "[": "]"}


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def as_map(expression: str) -> str:
    """`expression` with maps in place of objects."""
    return "".join(_translated(expression))


def _translated(expression: str) -> Iterator[str]:
    # What each bracket that is open holds: fields of an object, a key to escape, or anything.
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
            yield f'"{_unspelled(text)}"'
        elif kind == "mark" and text in _OPENING:
            open_brackets.append("object" if is_object else "")
            yield text
        elif kind == "mark" and text != ",":
            closed = open_brackets.pop() if open_brackets else ""
            yield _ESCAPED if closed == "key" else text
        else:
            yield text
        is_inside = bool(open_brackets) and open_brackets[-1] == "object"
        if not text.isspace() and text != "?":
            begins_entry = is_inside and text in ("{", ",")
        is_object = False


def _is_field(expression: str, at: int) -> bool:
    return _COLON.match(expression, at) is not None


def _unspelled(name: str) -> str:
    """The field that an identifier stands for."""
    wrapped = _WRAPPED.fullmatch(name)
    if wrapped and name not in _SPELLED:
        return wrapped[1]
    for spelled, mark in _SPELLED.items():
        name = name.replace(spelled, mark)
    return name
