"""Whether the schema in a definition describes a type: structural, with defaults that fit.

upstream: apiextensions-apiserver/pkg/apiserver/schema/validation.go and
pkg/apis/apiextensions/validation/validation.go:ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.custom.checking import checked
from fairlead.apiserver.custom.definition_rules import wrong_rules
from fairlead.apiserver.custom.structural import structural
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import forbidden, invalid, not_supported, required

Json = dict[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")


def wrong_schema(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with the schema of whole objects, which stands at `field`."""
    if not raw.get("type"):
        yield required(f"{field}.type", "must not be empty at the root")
    elif raw["type"] != "object":
        yield invalid(f"{field}.type", raw["type"], "must be object at the root")
    yield from _wrong_node(raw, field)


def _wrong_node(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong here and below; the type itself is looked at from above."""
    if raw.get("$ref") is not None:
        yield forbidden(f"{field}.$ref", "$ref is not supported")
    if raw.get("properties") and raw.get("additionalProperties") is not None:
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{field}.additionalProperties", why)
    if raw.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", why)
    yield from _wrong_list(raw, field)
    yield from _wrong_default(raw, field)
    yield from wrong_rules(raw, field)
    yield from _wrong_below(raw, field)


def _wrong_list(raw: Json, field: str) -> Iterator[Cause]:
    list_type, keys = raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-list-map-keys")
    if list_type is not None and list_type not in _LIST_TYPES:
        yield not_supported(f"{field}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if list_type == "map" and not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{field}.x-kubernetes-list-map-keys", why)
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(f"{field}.x-kubernetes-list-type", list_type or "", why)


def _wrong_default(raw: Json, field: str) -> Iterator[Cause]:
    if "default" in raw:
        for cause in checked(structural(raw), raw["default"], ""):
            yield Cause(cause.reason, cause.message, f"{field}.default{cause.field}")


def _wrong_below(raw: Json, field: str) -> Iterator[Cause]:
    for name, inner in (raw.get("properties") or {}).items():
        yield from _wrong_inner(inner, f"{field}.properties[{name}]", "specified object fields")
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        place = f"{field}.additionalProperties"
        yield from _wrong_inner(additional, place, "specified object fields")
    if isinstance(raw.get("items"), dict):
        yield from _wrong_inner(raw["items"], f"{field}.items", "specified array items")
    elif raw.get("type") == "array":
        yield required(f"{field}.items", "must be specified")


def _wrong_inner(raw: Json, field: str, what: str) -> Iterator[Cause]:
    free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if not raw.get("type") and not free and raw.get("$ref") is None:
        yield required(f"{field}.type", f"must not be empty for {what}")
    elif raw.get("type") and raw["type"] not in _TYPES:
        yield not_supported(f"{field}.type", raw["type"], _TYPES)
    yield from _wrong_node(raw, field)
