"""Whether the schema in a definition describes a type: structural, with defaults that fit.

Rules are read only where all else of the schema is right.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
validateCustomResourceDefinitionValidation, ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.default_validation import wrong_defaults
from fairlead.apiserver.apiextensions.definition.list_validation import wrong_list
from fairlead.apiserver.apiextensions.definition.rule_cost import Bill, Reading, inner_cardinality
from fairlead.apiserver.apiextensions.definition.rule_validation import (
    Asking,
    wrong_expressions,
    wrong_words,
)
from fairlead.apiserver.apiextensions.definition.schema_form import misshapen
from fairlead.apiserver.apiextensions.definition.structural_validation import wrong_structure
from fairlead.apiserver.error import Cause
from fairlead.apiserver.gotext.definition import shown_schema
from fairlead.apiserver.validation.meta.field import forbidden, invalid, not_supported, required

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_IDENTITY: Final = ("apiVersion", "kind", "metadata")
# What schemas of other systems may say, and these may not.
_FOREIGN: Final = (
    *("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"),
)
_ABOVE_STATUS: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum"),
    *("ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems"),
    *("UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example"),
    *("XPreserveUnknownFields", "XValidations"),
)
_JUNCTIONS: Final = ("allOf", "oneOf", "anyOf")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema stands: why there is no default here, and where pasts end.

    `cardinality` is how many values of it there may be; rules are charged to the bill.
    """

    bill: Bill
    is_root: bool = False
    is_identity: bool = False
    no_default: str | None = None
    no_past_below: str = ""
    asks: bool = False
    cardinality: int | None = 1


def wrong_schema(
    raw: Json, field: str, reading: Reading | None = None, *, has_status: bool = False
) -> Iterator[Cause]:
    """What is wrong with the schema of whole objects, which stands at `field`.

    Without a `reading` its rules are not looked at.
    """
    odd = next(misshapen(raw, field), None)
    if odd is not None:
        yield invalid(odd, "", "there must stand something of another type")
        return
    if has_status:
        yield from _above_status(raw, field)
    if raw.get("nullable"):
        yield forbidden(f"{field}.nullable", "nullable cannot be true at the root")
    found: list[Cause] = []
    if _is_read(raw):
        found = list(wrong_structure(raw, field)) or list(wrong_defaults(raw, field))
        yield from found
    asks = reading is not None and not found and _is_read(raw)
    bill = Bill(reading)
    yield from _wrong_node(raw, field, _Place(bill, is_root=True, asks=asks))
    yield from bill.too_much(field)


def _above_status(raw: Json, field: str) -> Iterator[Cause]:
    """With a status of its own, a schema says all it says below its fields."""
    name = raw.get("type", "")
    if name and name != "object":
        why = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        yield invalid(f"{field}.type", name, why)
    shown = shown_schema(raw)
    if any(value for key, value in shown.items() if key not in _ABOVE_STATUS):
        why = (
            f"only [{' '.join(_ABOVE_STATUS)}] fields are allowed at the root of the schema if the "
            "status subresource is enabled"
        )
        yield invalid(field, shown, why)


def _is_read(raw: Json) -> bool:
    """Whether a schema can be read as a structure at all."""
    own = any(raw.get(key) for key in (*_FOREIGN, "$schema")) or raw.get("type") == "null"
    if own or isinstance(raw.get("items"), list):
        return False
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        return False
    return all(_is_read(inner) for inner in _below(raw))


def _below(raw: Json) -> Iterator[Json]:
    yield from (raw.get("properties") or {}).values()
    for key in ("items", "additionalProperties", "not"):
        if isinstance(raw.get(key), dict):
            yield raw[key]
    for key in _JUNCTIONS:
        yield from raw.get(key) or ()


def _wrong_node(raw: Json, field: str, place: _Place) -> Iterator[Cause]:
    """What is wrong here and below, rules last."""
    told = [
        *_wrong_words(raw, field, place),
        *_wrong_below(raw, field, place),
        *_wrong_extensions(raw, field),
        *wrong_list(raw, field),
        *wrong_words(raw, field),
    ]
    yield from told
    if place.asks and not told:
        is_object = place.is_root or bool(raw.get("x-kubernetes-embedded-resource"))
        asking = Asking(place.bill, place.cardinality, place.no_past_below, is_object=is_object)
        yield from wrong_expressions(raw, field, asking)


def _wrong_words(raw: Json, field: str, place: _Place) -> Iterator[Cause]:
    name = raw.get("type") or ""
    if name and name not in _TYPES:
        yield not_supported(f"{field}.type", name, _TYPES)
    if raw.get("default") is not None and place.no_default is not None:
        yield forbidden(f"{field}.default", f"must not be set {place.no_default}")
    for key in _FOREIGN:
        if raw.get(key) or (key in ("additionalItems", "dependencies") and key in raw):
            yield forbidden(f"{field}.{key}", f"{key} is not supported")
    if name == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(f"{field}.type", why)
    if isinstance(raw.get("items"), list):
        yield forbidden(f"{field}.items", "items must be a schema object and not an array")
    if place.is_identity and raw.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        yield forbidden(f"{field}.x-kubernetes-embedded-resource", why)
    if raw.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", why)


def _wrong_extensions(raw: Json, field: str) -> Iterator[Cause]:
    unknown, map_type = "x-kubernetes-preserve-unknown-fields", raw.get("x-kubernetes-map-type")
    if raw.get(unknown) is False:
        yield invalid(f"{field}.{unknown}", raw[unknown], "must be true or undefined")
    if map_type is None:
        return
    name = raw.get("type") or ""
    if name != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{field}.type", name, why) if name else required(f"{field}.type", why)
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{field}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _wrong_below(raw: Json, field: str, place: _Place) -> Iterator[Cause]:
    place = replace(place, cardinality=inner_cardinality(raw, place.cardinality))
    inner = replace(place, is_root=False)
    yield from _wrong_map(raw, field, inner)
    for name, one in (raw.get("properties") or {}).items():
        where = f"{field}.properties[{name}]"
        yield from _wrong_node(one, where, _place_of(raw, name, field, place))
    bare = replace(inner, asks=False)
    if isinstance(raw.get("not"), dict):
        yield from _wrong_node(raw["not"], f"{field}.not", bare)
    for key in _JUNCTIONS:
        for at, one in enumerate(raw.get(key) or ()):
            yield from _wrong_node(one, f"{field}.{key}[{at}]", bare)
    if isinstance(raw.get("items"), dict):
        if raw.get("x-kubernetes-list-type") != "map":
            inner = replace(inner, no_past_below=inner.no_past_below or field)
        yield from _wrong_node(raw["items"], f"{field}.items", inner)


def _wrong_map(raw: Json, field: str, place: _Place) -> Iterator[Cause]:
    additional = raw.get("additionalProperties")
    where = f"{field}.additionalProperties"
    if raw.get("properties") and (isinstance(additional, dict) or additional is False):
        yield forbidden(where, "additionalProperties and properties are mutual exclusive")
    if isinstance(additional, dict):
        if place.is_identity:
            why = "inside additionalProperties applying to object metadata"
            place = replace(place, no_default=why)
        yield from _wrong_node(additional, where, place)


def _place_of(raw: Json, name: str, field: str, place: _Place) -> _Place:
    """The place of a field called `name`."""
    inner = replace(place, is_root=False)
    if raw.get("x-kubernetes-map-type", "granular") not in ("atomic", "granular"):
        inner = replace(inner, no_past_below=inner.no_past_below or field)
    if (place.is_root or raw.get("x-kubernetes-embedded-resource")) and name in _IDENTITY:
        inner = replace(inner, is_identity=True)
        if place.is_root:
            inner = replace(inner, no_default=f"in top-level {name}")
    return inner
