"""What a schema says of lists: whether they are atomic, sets or maps, and what the keys are.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema, validateMapListKeysMapSet
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import (
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)

LIST_TYPES: Final = ("atomic", "set", "map")
_TYPE: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_IN_SET: Final = f"must be atomic as item of a list with {_TYPE}=set"
_KEYED: Final = f"if {_TYPE} is map"
_SCALAR: Final = f"must be a scalar type if parent array's {_TYPE} is map"
_SURE: Final = f"this property is in {_KEYS}, so it must have a default or be a required property"


def wrong_list(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with the lists that the schema at `field` describes."""
    list_type, keys, items = raw.get(_TYPE), raw.get(_KEYS) or [], raw.get("items")
    if list_type is not None and raw.get("type") != "array":
        where, why = f"{field}.type", f"must be array if {_TYPE} is specified"
        name = raw.get("type") or ""
        yield invalid(where, name, why) if name else required(where, why)
    elif list_type == "set" and isinstance(items, dict):
        yield from _wrong_set(items, f"{field}.items")
    if list_type is not None and list_type not in LIST_TYPES:
        yield not_supported(f"{field}.{_TYPE}", list_type, LIST_TYPES)
    if keys and list_type != "map":
        why = f"must be map if {_KEYS} is non-empty"
        where = f"{field}.{_TYPE}"
        yield required(where, why) if list_type is None else invalid(where, list_type, why)
    if list_type == "map":
        yield from _wrong_map(items, keys, field)
    if list_type in ("map", "set") and isinstance(items, dict):
        if items.get("nullable"):
            why = f"cannot be nullable when {_TYPE} is {list_type}"
            yield forbidden(f"{field}.items.nullable", why)
        if list_type == "map":
            yield from _unsure_keys(items, keys, f"{field}.items")


def _wrong_set(items: Json, field: str) -> Iterator[Cause]:
    if items.get("type") == "array" and items.get(_TYPE, "atomic") != "atomic":
        yield invalid(f"{field}.{_TYPE}", items[_TYPE], _IN_SET)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # The value shown is the list's type, upstream too.
        yield invalid(f"{field}.x-kubernetes-map-type", items.get(_TYPE), _IN_SET)


def _wrong_map(items: Any, keys: list[str], field: str) -> Iterator[Cause]:
    if not keys:
        yield required(f"{field}.{_KEYS}", f"must not be empty {_KEYED}")
    if items is None:
        yield required(f"{field}.items", f"must have a schema {_KEYED}")
    if not isinstance(items, dict):
        return
    name = items.get("type") or ""
    if name != "object":
        why = f"must be object if parent array's {_TYPE} is map"
        yield invalid(f"{field}.items.type", name, why)
        return
    fields, again = items.get("properties") or {}, repeated_indexes(keys)
    for at, key in enumerate(keys):
        if key not in fields:
            yield invalid(f"{field}.{_KEYS}", keys, "entries must all be names of item properties")
        elif fields[key].get("type") in ("array", "object"):
            yield invalid(f"{field}.items.properties[{key}].type", name, _SCALAR)
        if at in again:
            yield invalid(f"{field}.{_KEYS}", keys, "must not contain duplicate entries")


def _unsure_keys(items: Json, keys: list[str], field: str) -> Iterator[Cause]:
    """Keys that an item might not have."""
    fields, given = items.get("properties") or {}, set(items.get("required") or ())
    for key in keys:
        if key not in fields:
            continue
        where = f"{field}.properties[{key}]"
        if key not in given and fields[key].get("default") is None:
            yield required(f"{where}.default", _SURE)
        if fields[key].get("nullable"):
            why = f"this property is in {_KEYS}, so it cannot be nullable"
            yield forbidden(f"{where}.nullable", why)
