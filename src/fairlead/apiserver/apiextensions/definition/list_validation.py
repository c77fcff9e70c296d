"""Validates x-kubernetes-list-type and x-kubernetes-list-map-keys in schemas.

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
_IF_MAP: Final = f"if {_TYPE} is map"
_KEY_NOT_SCALAR: Final = f"must be a scalar type if parent array's {_TYPE} is map"
_OPTIONAL_KEY: Final = (
    f"this property is in {_KEYS}, so it must have a default or be a required property"
)


def list_causes(raw: Json, field: str) -> Iterator[Cause]:
    """Yield the errors of the list keywords in the schema `raw` at `field`."""
    list_type, keys, items = raw.get(_TYPE), raw.get(_KEYS) or [], raw.get("items")
    if list_type is not None and raw.get("type") != "array":
        path, problem = f"{field}.type", f"must be array if {_TYPE} is specified"
        type_name = raw.get("type") or ""
        yield invalid(path, type_name, problem) if type_name else required(path, problem)
    elif list_type == "set" and isinstance(items, dict):
        yield from _set_causes(items, f"{field}.items")
    if list_type is not None and list_type not in LIST_TYPES:
        yield not_supported(f"{field}.{_TYPE}", list_type, LIST_TYPES)
    if keys and list_type != "map":
        problem = f"must be map if {_KEYS} is non-empty"
        path = f"{field}.{_TYPE}"
        yield required(path, problem) if list_type is None else invalid(path, list_type, problem)
    if list_type == "map":
        yield from _map_causes(items, keys, field)
    if list_type in ("map", "set") and isinstance(items, dict):
        if items.get("nullable"):
            problem = f"cannot be nullable when {_TYPE} is {list_type}"
            yield forbidden(f"{field}.items.nullable", problem)
        if list_type == "map":
            yield from _optional_key_causes(items, keys, f"{field}.items")


def _set_causes(items: Json, field: str) -> Iterator[Cause]:
    if items.get("type") == "array" and items.get(_TYPE, "atomic") != "atomic":
        yield invalid(f"{field}.{_TYPE}", items[_TYPE], _IN_SET)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # Like upstream, the error quotes the list type of the items instead of their map type.
        yield invalid(f"{field}.x-kubernetes-map-type", items.get(_TYPE), _IN_SET)


def _map_causes(items: Any, keys: list[str], field: str) -> Iterator[Cause]:
    if not keys:
        yield required(f"{field}.{_KEYS}", f"must not be empty {_IF_MAP}")
    if items is None:
        yield required(f"{field}.items", f"must have a schema {_IF_MAP}")
    if not isinstance(items, dict):
        return
    type_name = items.get("type") or ""
    if type_name != "object":
        problem = f"must be object if parent array's {_TYPE} is map"
        yield invalid(f"{field}.items.type", type_name, problem)
        return
    fields, duplicates = items.get("properties") or {}, repeated_indexes(keys)
    for index, key in enumerate(keys):
        if key not in fields:
            yield invalid(f"{field}.{_KEYS}", keys, "entries must all be names of item properties")
        elif fields[key].get("type") in ("array", "object"):
            yield invalid(f"{field}.items.properties[{key}].type", type_name, _KEY_NOT_SCALAR)
        if index in duplicates:
            yield invalid(f"{field}.{_KEYS}", keys, "must not contain duplicate entries")


def _optional_key_causes(items: Json, keys: list[str], field: str) -> Iterator[Cause]:
    """Yield errors for each of `keys` that an item may omit or set to null."""
    fields, required_names = items.get("properties") or {}, set(items.get("required") or ())
    for key in keys:
        if key not in fields:
            continue
        path = f"{field}.properties[{key}]"
        if key not in required_names and fields[key].get("default") is None:
            yield required(f"{path}.default", _OPTIONAL_KEY)
        if fields[key].get("nullable"):
            problem = f"this property is in {_KEYS}, so it cannot be nullable"
            yield forbidden(f"{path}.nullable", problem)
