"""Parses paths to fields that a schema declares, such as `.spec.size` and `.spec['a.b']`.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go:ValidFieldPath
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.api.json import Json

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'")
_NO_SUCH_FIELD: Final = "does not refer to a valid field"
_UNEXPECTED_END: Final = "unexpected end of JSON path"


class FieldPathError(ValueError):
    """A path does not lead to a field; the error text is the reason."""


def field_at(path: str, raw: Json, *, is_plain: bool = False) -> tuple[tuple[str, ...], Json]:
    """Return (field names of `path`, schema of the last field).

    `raw` is the schema in which the path begins. Raises FieldPathError if the path is malformed or
    contains a field that `raw` does not declare. If `is_plain` is True, the path must not contain
    brackets.
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
    next_token = next(tokens, None)
    if next_token is None:
        raise FieldPathError(_UNEXPECTED_END)
    return str(next_token)


def _bracketed(tokens: Any) -> str:
    next_token = _next(tokens)
    if len(next_token) < 2 or next_token[0] != "'" or next_token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {next_token}")
    return re.sub(r"\\(.)", r"\1", next_token[1:-1])


def _field_of(raw: Json, name: str) -> Json:
    fields, additional = raw.get("properties"), raw.get("additionalProperties")
    schema = fields.get(name) if fields else additional
    if not isinstance(schema, dict):
        raise FieldPathError(_NO_SUCH_FIELD)
    return schema
