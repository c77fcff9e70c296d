"""Paths to fields that a schema must have: `.spec.size`, `.spec['a.b']`.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go:ValidFieldPath
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.api.json import Json

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'")
_NONE: Final = "does not refer to a valid field"
_CUT: Final = "unexpected end of JSON path"


class FieldPathError(ValueError):
    """A path to no field; the text says why."""


def field_at(path: str, raw: Json, *, is_plain: bool = False) -> tuple[tuple[str, ...], Json]:
    """The steps of `path` and the schema of what is there. Raises FieldPathError.

    A plain path has no brackets.
    """
    tokens, names = iter(_TOKEN.findall(path)), []
    for piece in tokens:
        if piece == ".":
            name = _next(tokens)
        elif piece == "[" and is_plain:
            raise FieldPathError("array notation is not allowed")
        elif piece == "[":
            name = _bracketed(tokens)
        else:
            raise FieldPathError(f"expected [ or . but got: {piece}")
        raw = _field_of(raw, name)
        if piece == "[" and (closing := _next(tokens)) != "]":
            raise FieldPathError(f"expected ] but got {closing}")
        names.append(name)
    return tuple(names), raw


def _next(tokens: Any) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError(_CUT)
    return str(token)


def _bracketed(tokens: Any) -> str:
    token = _next(tokens)
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _field_of(raw: Json, name: str) -> Json:
    fields, additional = raw.get("properties"), raw.get("additionalProperties")
    found = fields.get(name) if fields else additional
    if not isinstance(found, dict):
        raise FieldPathError(_NONE)
    return found
