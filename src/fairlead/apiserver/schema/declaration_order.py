"""Sorts the fields of objects in the order in which Go declares them, and keys of maps by name.

upstream: encoding/json, over the structs of staging/src/k8s.io/api
"""

from __future__ import annotations

from typing import Any

from fairlead.apiserver.schema.model import Schema, Type


def as_declared(schema: Schema | None, value: Any) -> Any:
    """Return `value`, of type `schema`, with its members in Go's order; unknown members come last.

    If `schema` is None or of the type ANY, `value` is returned unchanged.
    """
    if schema is None or schema.type is Type.ANY:
        return value
    match value:
        case dict():
            if schema.type is Type.OBJECT:
                return _struct(schema, value)
            return {key: as_declared(schema.items, value[key]) for key in sorted(value)}
        case list():
            return [as_declared(schema.items, item) for item in value]
        case _:
            return value


def _struct(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    known = {
        key: as_declared(field.schema, value[key])
        for key, field in schema.fields.items()
        if key in value
    }
    return known | {key: item for key, item in value.items() if key not in known}
