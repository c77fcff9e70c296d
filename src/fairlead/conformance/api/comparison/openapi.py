"""Normalizes OpenAPI documents for comparison.

The JSON library of the recorded server writes an embedded Go struct as a member. The member has the
name of the struct's type (`SchemaProps`, `OperationProps`, ...). Clients expect the fields of the
struct in the parent object instead, so `as_published` moves these fields to the parent object.
Descriptions were not recorded.
"""

from __future__ import annotations

from typing import Any, Final

_EMBEDDED: Final = frozenset(
    {
        "ArbitraryKeys",
        "Extensions",
        "MediaTypeProps",
        "OperationProps",
        "ParameterProps",
        "RequestBodyProps",
        "ResponseProps",
        "SecuritySchemeProps",
        "SchemaProps",
        "SwaggerSchemaProps",
    }
)
_NAMED_FREELY: Final = ("properties", "schemas", "paths", "definitions")


def as_published(value: Any) -> Any:
    """Return the recorded document `value`, with each embedded Go struct replaced by its fields."""
    if isinstance(value, list):
        return [as_published(item) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, item in value.items():
        if key in _EMBEDDED and (item is None or isinstance(item, dict)):
            made |= as_published(item or {})
        else:
            made[key] = as_published(item)
    return made


def without_words(value: Any, *, is_named_freely: bool = False) -> Any:
    """Return `value`, a part of an OpenAPI document, without its descriptions.

    A property that is itself named `description` is kept. Set `is_named_freely` if the keys of
    `value` are not keywords of OpenAPI but names that the document defines, such as names of
    properties.
    """
    if isinstance(value, list):
        return [without_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_words(item, is_named_freely=key in _NAMED_FREELY)
        for key, item in value.items()
        if is_named_freely or key != "description" or not isinstance(item, str)
    }
