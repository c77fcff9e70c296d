"""The JSON text of a patched document, as evanphx/json-patch writes it.

Upstream quotes this text in errors about the patched object. The members of an object are sorted by
name if an operation's path leads through the object, or if a merge patch changes it. All other
parts stay as the server or the client wrote them.

upstream: gopkg.in/evanphx/json-patch.v4/{patch,merge}.go
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.apiserver.gotext.value import escape_html, json_text
from fairlead.apiserver.patch.jsonpatch.document import (
    OperationError,
    PartialArray,
    PartialObject,
    opened,
)
from fairlead.apiserver.schema.declaration_order import as_declared
from fairlead.apiserver.schema.model import Schema, Type


def document_text(schema: Schema | None, part: Any) -> str:
    """Return the JSON text of `part`, a part of a document (see the module `document`).

    `schema` defines the field order of decoded JSON values.
    """
    match part:
        case PartialObject():
            members = sorted(part.members.items())
            return f"{{{','.join(_member(schema, key, value) for key, value in members)}}}"
        case PartialArray():
            inner = schema.items if schema is not None else None
            return f"[{','.join(document_text(inner, item) for item in part.items)}]"
        case msgspec.Raw():
            text = bytes(part).decode(errors="replace")
            try:
                return escape_html(msgspec.json.format(text, indent=-1))
            except msgspec.DecodeError:
                return escape_html(text)
        case _:
            return json_text(as_declared(schema, part))


def _member(schema: Schema | None, key: str, value: Any) -> str:
    inner = None
    if schema is not None:
        known = schema.fields.get(key) if schema.type is Type.OBJECT else None
        inner = known.schema if known is not None else schema.items
    return f"{json_text(key)}:{document_text(inner, value)}"


def merged_part(part: Any, patch: Any) -> Any:
    """Return `part` with the merge patch `patch` applied.

    The module `document` describes the forms that `part` and `patch` can have. A PartialObject in
    `part` is changed in place.
    """
    result = _opened_if_composite(part)
    if not isinstance(result, PartialObject):
        return _without_nulls(patch)
    changes = _opened_if_composite(patch)
    if not isinstance(changes, PartialObject):
        return patch
    for key, value in changes.members.items():
        known = result.members.get(key)
        if value is None:
            result.members.pop(key, None)
        elif known is None:
            result.members[key] = _without_nulls(value)
        else:
            result.members[key] = merged_part(known, value)
    return result


def _without_nulls(part: Any) -> Any:
    result = _opened_if_composite(part)
    match result:
        case PartialObject():
            kept = ((key, value) for key, value in result.members.items() if value is not None)
            return PartialObject({key: _without_nulls(value) for key, value in kept})
        case PartialArray():
            return PartialArray(list(map(_without_nulls, result.items)))
        case _:
            return result


def _opened_if_composite(part: Any) -> Any:
    """Return an object as a PartialObject, a list as a PartialArray, and any other `part` as is."""
    try:
        return opened(part)
    except OperationError:
        return part
