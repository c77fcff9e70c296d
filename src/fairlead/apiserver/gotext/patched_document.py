"""What a patch has made of a document, as upstream's patcher writes it.

What it went through has its members sorted; all else is as it was written, by the server or in the
patch.

upstream: gopkg.in/evanphx/json-patch.v4/{patch,merge}.go
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.apiserver.gotext.value import escaped, go_json
from fairlead.apiserver.patch.jsonpatch.document import Array, CannotError, Object, opened
from fairlead.apiserver.schema.declared import as_declared
from fairlead.apiserver.schema.model import Schema, Type


def text_of(schema: Schema | None, part: Any) -> str:
    """The text of a part, which is of that type if anybody knows it."""
    match part:
        case Object():
            members = sorted(part.members.items())
            return f"{{{','.join(_member(schema, key, value) for key, value in members)}}}"
        case Array():
            inner = schema.items if schema is not None else None
            return f"[{','.join(text_of(inner, item) for item in part.items)}]"
        case msgspec.Raw():
            text = bytes(part).decode(errors="replace")
            try:
                return escaped(msgspec.json.format(text, indent=-1))
            except msgspec.DecodeError:
                return escaped(text)
        case _:
            return go_json(as_declared(schema, part))


def _member(schema: Schema | None, key: str, value: Any) -> str:
    inner = None
    if schema is not None:
        known = schema.fields.get(key) if schema.type is Type.OBJECT else None
        inner = known.schema if known is not None else schema.items
    return f"{go_json(key)}:{text_of(inner, value)}"


def merged_part(part: Any, patch: Any) -> Any:
    """`part` once a merge patch, a part too, was merged into it."""
    made = _opened(part)
    if not isinstance(made, Object):
        return _without_nulls(patch)
    changes = _opened(patch)
    if not isinstance(changes, Object):
        return patch
    for key, value in changes.members.items():
        known = made.members.get(key)
        if value is None:
            made.members.pop(key, None)
        elif known is None:
            made.members[key] = _without_nulls(value)
        else:
            made.members[key] = merged_part(known, value)
    return made


def _without_nulls(part: Any) -> Any:
    made = _opened(part)
    match made:
        case Object():
            kept = ((key, value) for key, value in made.members.items() if value is not None)
            return Object({key: _without_nulls(value) for key, value in kept})
        case Array():
            return Array(list(map(_without_nulls, made.items)))
        case _:
            return made


def _opened(part: Any) -> Any:
    """`part`, opened if anything is in it."""
    try:
        return opened(part)
    except CannotError:
        return part
