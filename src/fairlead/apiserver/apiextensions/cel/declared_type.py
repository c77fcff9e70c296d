"""The CEL types that schemas declare, and the maximum sizes of values, for cost estimates.

A validation rule (x-kubernetes-validations) cannot access a value whose schema has no type.

upstream: apiserver/pkg/cel/common/schemas.go:SchemaDeclType, apiserver/pkg/cel/types.go,
apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.escaped_name import RESERVED, spelled
from fairlead.cel.check.types import DYN, STRING, CelType, list_of, map_of, optional_of, parse_type
from fairlead.cel.cost.estimate import Estimate

REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
SELF_TYPE: Final = "selfType"
# upstream: apiserver/pkg/cel/escaping.go:Escape
_ESCAPABLE: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_TEXT_MAX: Final = REQUEST_BYTES_MAX - 2
_INSTANT_BYTES, _INSTANT_BYTES_MIN, _DATE_BYTES, _DURATION_BYTES_MIN = 32, 21, 12, 3
_TEXT: Final[Json] = {"type": "string"}
_IDENTITY: Final[Json] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}


class Declared(Struct, frozen=True):
    """The CEL type that a schema declares.

    `size` is the maximum number of bytes, items or entries of a value. `bytes_min` is the minimum
    length of a value in JSON, in bytes.
    """

    type_: CelType
    bytes_min: int
    size: int = 0
    fields: Mapping[str, Declared] = field(default_factory=dict)
    key: Declared | None = None
    item: Declared | None = None

    @property
    def cardinality_max(self) -> int:
        """The maximum number of values of this type in a request."""
        return REQUEST_BYTES_MAX // (self.bytes_min + 1)

    def size_of(self, path: tuple[str, ...]) -> Estimate | None:
        """Return the range of sizes of the value at `path`: from 0 to its maximum size.

        The first segment of `path` is the name of a variable of this type. Return None if the
        schema does not declare the value.
        """
        declared_at: Declared | None = self
        for segment in path[1:]:
            if declared_at is None:
                return None
            if segment in ("@items", "@values"):
                declared_at = declared_at.item
            elif segment == "@keys":
                declared_at = declared_at.key
            else:
                declared_at = declared_at.fields.get(segment)
        return Estimate(0, declared_at.size) if declared_at is not None else None

    def structures(self) -> dict[str, dict[str, CelType]]:
        """Return the structure types that occur in this type, with the types of their fields.

        The result maps the name of each structure type to {name of a field: type of the field}.
        This type itself is included if it is a structure type.
        """
        found: dict[str, dict[str, CelType]] = {}
        if self.type_.is_structure:
            fields = {name: one.type_ for name, one in self.fields.items()}
            found[self.type_.name] = fields | {
                word: fields[spelled(word)] for word in RESERVED if spelled(word) in fields
            }
        for one in (*self.fields.values(), *filter(None, (self.item,))):
            found |= one.structures()
        return found


def declared(raw: Json, name: str = SELF_TYPE, *, is_object: bool = False) -> Declared | None:
    """Return the type that the schema `raw` declares; None if rules cannot access its values.

    The type is called `name`, and the type of its field `f` is called `name.f`. `is_object` adds
    the fields apiVersion, kind and metadata.
    """
    if raw.get("x-kubernetes-int-or-string"):
        size = raw.get("maxLength")
        return Declared(DYN, 1, _TEXT_MAX if size is None else _characters(size))
    match raw.get("type"):
        case "array":
            return _list(raw, name)
        case "object":
            return _object(raw, name, is_object=is_object)
        case "string":
            return _text(raw)
        case "boolean":
            return Declared(parse_type("bool"), 4)
        case "number":
            return Declared(parse_type("double"), 1)
        case "integer":
            return Declared(parse_type("int"), 1)
        case _:
            return None


def variables_of(known: Declared, rule: Json) -> dict[str, CelType]:
    """Return the types of the variables `self` and `oldSelf` in `rule`.

    `known` is the type of the values that `rule` validates.
    """
    old = optional_of(known.type_) if rule.get("optionalOldSelf") else known.type_
    return {"self": known.type_, "oldSelf": old}


def _inner(raw: Any, name: str) -> Declared | None:
    if not isinstance(raw, dict):
        return None
    return declared(raw, name, is_object=bool(raw.get("x-kubernetes-embedded-resource")))


def _list(raw: Json, name: str) -> Declared | None:
    item = _inner(raw.get("items"), f"{name}.@idx")
    if item is None:
        return None
    size = raw.get("maxItems")
    size_max = _TEXT_MAX // (item.bytes_min + 1) if size is None else max(size, 0)
    return Declared(list_of(item.type_), 2, size_max, item=item)


def _object(raw: Json, name: str, *, is_object: bool) -> Declared | None:
    if isinstance(raw.get("additionalProperties"), dict):
        return _map(raw, name)
    properties = dict(raw.get("properties") or {})
    if is_object:
        properties |= _IDENTITY
    required_names = set(raw.get("required") or ())
    fields, bytes_min = {}, 2
    for property_name, inner in properties.items():
        found = _inner(inner, f"{name}.{spelled(property_name)}")
        if found is None:
            continue
        if _ESCAPABLE.fullmatch(property_name):
            fields[spelled(property_name)] = found
        if property_name in required_names and inner.get("default") is None:
            bytes_min += len(property_name.encode()) + found.bytes_min + 4
    return Declared(CelType(name), bytes_min, fields=fields)


def _map(raw: Json, name: str) -> Declared | None:
    item = _inner(raw["additionalProperties"], f"{name}.@elem")
    if item is None:
        return None
    size = raw.get("maxProperties")
    size_max = _TEXT_MAX // (item.bytes_min + 6) if size is None else max(size, 0)
    return Declared(map_of(STRING, item.type_), 2, size_max, key=Declared(STRING, 2), item=item)


def _text(raw: Json) -> Declared:
    size, format_ = raw.get("maxLength"), raw.get("format")
    match format_:
        case "byte":
            return Declared(parse_type("bytes"), 2, _TEXT_MAX if size is None else max(size, 0))
        case "duration":
            return Declared(parse_type("duration"), _DURATION_BYTES_MIN, _INSTANT_BYTES)
        case "date":
            return Declared(parse_type("timestamp"), _DATE_BYTES, _DATE_BYTES)
        case "date-time":
            return Declared(parse_type("timestamp"), _INSTANT_BYTES_MIN, _INSTANT_BYTES)
        case _:
            return Declared(STRING, 2, _text_size(raw))


def _text_size(raw: Json) -> int:
    if raw.get("maxLength") is not None:
        return _characters(raw["maxLength"])
    if raw.get("enum"):
        return max(len(one.encode()) if isinstance(one, str) else 0 for one in raw["enum"])
    return _TEXT_MAX


def _characters(length: int) -> int:
    """Return the maximum number of bytes in a string of `length` characters."""
    return max(length, 0) * 4
