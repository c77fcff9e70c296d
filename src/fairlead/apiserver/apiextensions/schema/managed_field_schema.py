"""A custom resource's type as those see it who own its fields: appliers and managers.

Where a definition lets unknown fields stay, it does so for everything below: there, an object has
the fields that it is described with, and any other. What nobody described is what it shows.
Schemas without a type, such as those of numbers that may be texts, take values of every type.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go,
kube-openapi/pkg/schemaconv/openapi.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.apiextensions.schema.structural import Structural
from fairlead.apiserver.schema.model import ANYTHING, Field, Schema, Topology, Type, Zero, schemas

_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Final = {
    "string": Type.STRING,
    "integer": Type.INT64,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}
# upstream: kube-openapi/pkg/schemaconv/smd.go:convertPrimitive
_TEXT_FORMATS: Final = ("", "byte")
_LISTS: Final = {"set": Topology.SET, "map": Topology.MAP}


def object_type(schema: Structural) -> Schema:
    """The type of whole objects: with the fields that all objects have."""
    fields, defaults = _fields(schema, keeps=schema.keeps_unknown)
    rest = _rest(schema, keeps=schema.keeps_unknown)
    return Schema(Type.OBJECT, fields={**fields, **_common()}, items=rest, key_defaults=defaults)


def field_type(schema: Structural, *, keeps: bool = False) -> Schema:
    """The type of a value; `keeps`: unknown fields stay around it."""
    keeps = keeps or schema.keeps_unknown
    if schema.type == "array":
        return _list(schema, keeps=keeps)
    if schema.type in ("object", ""):
        return _object(schema, keeps=keeps)
    if schema.type == "string" and schema.raw.get("format", "") not in _TEXT_FORMATS:
        return Schema(Type.INT_OR_STRING)  # whatever JSON has for it
    return Schema(_SCALARS.get(schema.type, Type.ANY))


def _list(schema: Structural, *, keeps: bool) -> Schema:
    topology = _LISTS.get(schema.raw.get("x-kubernetes-list-type", ""), Topology.ATOMIC)
    keys = tuple(schema.raw.get("x-kubernetes-list-map-keys") or ())
    items = field_type(schema.items, keeps=keeps) if schema.items else ANYTHING
    return Schema(Type.LIST, topology, items=items, keys=keys)


def _object(schema: Structural, *, keeps: bool) -> Schema:
    is_atomic = schema.raw.get("x-kubernetes-map-type") == "atomic"
    topology = Topology.ATOMIC if is_atomic else Topology.GRANULAR
    fields, defaults = _fields(schema, keeps=keeps)
    if schema.is_embedded:
        fields = {**fields, **_common()}
    rest = _rest(schema, keeps=keeps) or (None if fields else ANYTHING)
    of = Type.ANY if not schema.type else Type.OBJECT if fields else Type.MAP
    return Schema(of, topology, fields=fields, items=rest, key_defaults=defaults)


def _fields(schema: Structural, *, keeps: bool) -> tuple[dict[str, Field], dict[str, object]]:
    """The fields that a schema names, and what those are by default."""
    fields = {
        name: _field(field_type(inner, keeps=keeps)) for name, inner in schema.properties.items()
    }
    defaults = {
        name: inner.raw["default"]
        for name, inner in schema.properties.items()
        if "default" in inner.raw
    }
    return fields, defaults


def _rest(schema: Structural, *, keeps: bool) -> Schema | None:
    """The type of the fields that a schema does not name, None if there are none."""
    if schema.additional is not None:
        return field_type(schema.additional, keeps=keeps)
    return ANYTHING if keeps else None


def _common() -> dict[str, Field]:
    return {
        "apiVersion": _field(Schema(Type.STRING)),
        "kind": _field(Schema(Type.STRING)),
        "metadata": _field(schemas().of_definition(_METADATA)),
    }


def _field(schema: Schema) -> Field:
    return Field(schema, Zero.KEEP)
