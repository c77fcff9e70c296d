"""Makes objects for builders, and refuses unknown fields.

If unknown fields were ignored, a misspelled field would have no effect, and the test would not show
the mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject

View = TypeVar("View", bound=ApiObject)


def built(view: type[View], api_version: str, value: Json) -> View:
    """Return the object `value` as an instance of the class `view`.

    `api_version` is the apiVersion of the object. Raises DecodeError for an unknown field or for a
    field of the wrong type.
    """
    # Imported only when needed: pytest loads this package, and the schema takes 0.07 s.
    from fairlead.apiserver.schema.unknown_field import unknown_fields  # noqa: PLC0415

    for path, near in unknown_fields(api_version, view.__name__, value):
        raise _refusal(view, value, path, "unknown field", near)
    return decode_as(view, value)


def built_as_read(view: type[View], value: Json) -> View:
    """Return the object `value`, of a kind without a schema in Fairlead, as an instance of `view`.

    Raises DecodeError for a field that `view` does not have, or a field of the wrong type.
    """
    for path, near in _unread_fields(value, view):
        raise _refusal(view, value, path, "Fairlead does not read this field", near)
    return decode_as(view, value)


def _refusal(view: type[View], value: Json, path: str, problem: str, near: str) -> DecodeError:
    metadata = value["metadata"]
    name = "/".join(metadata[key] for key in ("namespace", "name") if key in metadata)
    hint = f"; did you mean {near}?" if near else ""
    return DecodeError(kind=view.__name__, name=name, field=path, problem=f"{problem}{hint}")


def _unread_fields(value: Any, view: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field in `value` that `view` lacks, as (path, most similar known name or "").

    If the type of a field is a Struct, the fields of its value are searched, too. Lists are not
    searched.
    """
    if not (
        isinstance(value, dict) and isinstance(view, type) and issubclass(view, msgspec.Struct)
    ):
        return
    known = {one.encode_name: one.type for one in msgspec.structs.fields(view)}
    for name, member in value.items():
        inner = f"{path}.{name}".removeprefix(".")
        if name in known:
            yield from _unread_fields(member, known[name], inner)
        else:
            yield inner, next(iter(get_close_matches(name, known, 1)), "")
