"""The function `built`: makes an object for a builder, and refuses unknown fields."""

from __future__ import annotations

from typing import TypeVar

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject

View = TypeVar("View", bound=ApiObject)


def built(view: type[View], api_version: str, value: Json) -> View:
    """Return the object `value` of the kind `view` in `api_version`.

    Raises DecodeError for an unknown field or a field of the wrong type. If unknown fields were
    ignored, a misspelled field would have no effect, and the test would not show the mistake.
    """
    # Imported only when needed: pytest loads this package, and the schema takes 0.07 s.
    from fairlead.apiserver.schema.unknown_field import unknown_fields  # noqa: PLC0415

    for path, near in unknown_fields(api_version, view.__name__, value):
        metadata = value["metadata"]
        name = "/".join(metadata[key] for key in ("namespace", "name") if key in metadata)
        problem = f"unknown field; did you mean {near}?" if near else "unknown field"
        raise DecodeError(kind=view.__name__, name=name, field=path, problem=problem)
    return decode_as(view, value)
