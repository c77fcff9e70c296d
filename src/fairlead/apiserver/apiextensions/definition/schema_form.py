"""Checks that a schema is well-formed: that its members have the JSON types of JSONSchemaProps.

Schemas below `items` and `additionalProperties` are not checked when a definition is decoded.

upstream: pkg/apis/apiextensions/v1/marshal.go:JSONSchemaPropsOrArray.UnmarshalJSON
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_TEXTS: Final = (
    *("type", "format", "pattern", "title", "description", "id", "$schema", "$ref"),
    *("x-kubernetes-list-type", "x-kubernetes-map-type"),
)
_FLAGS: Final = (
    *("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
    "x-kubernetes-int-or-string",
)
_BOUNDS: Final = ("minimum", "maximum", "multipleOf")
_COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "enum")
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys(_BOUNDS, (int, float)),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_MAPS, dict),
    **dict.fromkeys(_LISTS, list),
    "not": dict,
}
_TEXT_LISTS: Final = ("required", "x-kubernetes-list-map-keys")
_RULE_TEXTS: Final = ("rule", "message", "messageExpression", "reason", "fieldPath")


def malformed_paths(raw: Any, field: str) -> Iterator[str]:
    """The paths in the schema at `field` whose value has the wrong JSON type."""
    if not isinstance(raw, dict):
        yield field
        return
    malformed = [key for key in raw if raw[key] is not None and not _is_well_formed(key, raw[key])]
    yield from (f"{field}.{key}" for key in malformed)
    if not malformed:
        for name, inner in (raw.get("properties") or {}).items():
            yield from malformed_paths(inner, f"{field}.properties[{name}]")
        for key in ("allOf", "anyOf", "oneOf"):
            for index, inner in enumerate(raw.get(key) or ()):
                yield from malformed_paths(inner, f"{field}.{key}[{index}]")
        for key in ("items", "additionalProperties", "not"):
            if isinstance(raw.get(key), dict):
                yield from malformed_paths(raw[key], f"{field}.{key}")


def _is_well_formed(key: str, value: Any) -> bool:
    if key in _TEXT_LISTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if key == "x-kubernetes-validations":
        return isinstance(value, list) and all(_is_rule(one) for one in value)
    if key in (*_BOUNDS, *_COUNTS) and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(key, object))


def _is_rule(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    texts = (value.get(key) for key in _RULE_TEXTS)
    return all(text is None or isinstance(text, str) for text in texts)
