"""Decodes a changed object without decoding its unchanged parts again.

The result is in stored form, which is the form in which the store keeps objects. The old object is
already in stored form, and so is each part that the new object shares with the old object.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.schema.decoder import decoded
from fairlead.apiserver.schema.model import Schema, Type

_ABSENT: Final = object()


def changed(schema: Schema, old: Any, new: Any) -> Any:
    """Return `new` in the form in which an API server stores it.

    `old` already has this form. A field whose value is the same Python object in `old` and `new` is
    not decoded again. Raises TypeMismatchError for a value of a wrong type. The path in the error
    does not start at the root. The path starts at the innermost JSON object that contains the value
    and also exists in `old`.
    """
    if schema.type is not Type.OBJECT or type(old) is not dict or type(new) is not dict:
        return decoded(schema, new)[0]
    rest: Json = {}
    made: Json = {}
    for key, item in new.items():
        before = old.get(key, _ABSENT)
        if item is before:
            made[key] = item
            continue
        field = schema.fields.get(key)
        inner: Any = None
        if field is not None and type(before) is dict and type(item) is dict:
            inner = changed(field.schema, before, item)
        if inner:
            made[key] = inner
        else:
            rest[key] = item
    # The order is that of `new`. Last come the fields that the decoder adds with a zero value,
    # because Go always encodes them.
    known = {**decoded(schema, rest)[0], **made}
    return {key: known.pop(key) for key in new if key in known} | known
