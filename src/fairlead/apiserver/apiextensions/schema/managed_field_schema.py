"""The schema of a custom resource for managedFields and server-side apply.

If a schema node preserves unknown fields, so do all nodes inside it.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go,
kube-openapi/pkg/schemaconv/openapi.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.apiextensions.schema.structural import Structural
from fairlead.apiserver.schema.model import (
    ANYTHING,
    ElementRelationship,
    Field,
    Schema,
    Type,
    Zero,
    schemas,
)

_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Final = {
    "string": Schema(Type.STRING),
    "integer": Schema(Type.INT64),
    "number": Schema(Type.NUMBER),
    "boolean": Schema(Type.BOOLEAN),
}
_ANY: Final = Schema(Type.ANY)
_ANY_SCALAR: Final = Schema(Type.INT_OR_STRING)
# upstream: kube-openapi/pkg/schemaconv/smd.go:convertPrimitive
_STRING_FORMATS: Final = ("", "byte")
_LIST_TOPOLOGIES: Final = {"set": ElementRelationship.SET, "map": ElementRelationship.MAP}


def object_schema(schema: Structural) -> Schema:
    """Return the schema of complete objects, including apiVersion, kind and metadata."""
    fields, defaults = _fields(schema, keeps_unknown=schema.keeps_unknown)
    other_fields = _other_fields(schema, keeps_unknown=schema.keeps_unknown)
    return Schema(
        Type.OBJECT,
        fields={**fields, **_object_fields()},
        items=other_fields,
        key_defaults=defaults,
    )


def value_schema(schema: Structural, *, keeps_unknown: bool = False) -> Schema:
    """Convert the structural `schema` of a value to the schema that server-side apply uses.

    `keeps_unknown` is True if an enclosing value preserves unknown fields.
    """
    keeps_unknown = keeps_unknown or schema.keeps_unknown
    if schema.type == "array":
        return _list(schema, keeps_unknown=keeps_unknown)
    if schema.type in ("object", ""):
        return _object(schema, keeps_unknown=keeps_unknown)
    if schema.type == "string" and schema.raw.get("format", "") not in _STRING_FORMATS:
        return _ANY_SCALAR
    return _SCALARS.get(schema.type, _ANY)


def _list(schema: Structural, *, keeps_unknown: bool) -> Schema:
    topology = _LIST_TOPOLOGIES.get(
        schema.raw.get("x-kubernetes-list-type", ""), ElementRelationship.ATOMIC
    )
    keys = tuple(schema.raw.get("x-kubernetes-list-map-keys") or ())
    items = value_schema(schema.items, keeps_unknown=keeps_unknown) if schema.items else ANYTHING
    return Schema(Type.LIST, topology, items=items, keys=keys)


def _object(schema: Structural, *, keeps_unknown: bool) -> Schema:
    is_atomic = schema.raw.get("x-kubernetes-map-type") == "atomic"
    topology = ElementRelationship.ATOMIC if is_atomic else ElementRelationship.GRANULAR
    fields, defaults = _fields(schema, keeps_unknown=keeps_unknown)
    if schema.is_embedded:
        fields = {**fields, **_object_fields()}
    other_fields = _other_fields(schema, keeps_unknown=keeps_unknown) or (
        None if fields else ANYTHING
    )
    type_ = Type.ANY if not schema.type else Type.OBJECT if fields else Type.MAP
    return Schema(type_, topology, fields=fields, items=other_fields, key_defaults=defaults)


def _fields(
    schema: Structural, *, keeps_unknown: bool
) -> tuple[dict[str, Field], dict[str, object]]:
    """Return (schemas of the declared fields, defaults of declared fields), both by field name."""
    fields = {
        name: _field(value_schema(inner, keeps_unknown=keeps_unknown))
        for name, inner in schema.properties.items()
    }
    defaults = {
        name: inner.raw["default"]
        for name, inner in schema.properties.items()
        if "default" in inner.raw
    }
    return fields, defaults


def _other_fields(schema: Structural, *, keeps_unknown: bool) -> Schema | None:
    """Return the schema of undeclared fields; None if undeclared fields are not allowed."""
    if schema.additional is not None:
        return value_schema(schema.additional, keeps_unknown=keeps_unknown)
    return ANYTHING if keeps_unknown else None


def _object_fields() -> dict[str, Field]:
    return {
        "apiVersion": _field(Schema(Type.STRING)),
        "kind": _field(Schema(Type.STRING)),
        "metadata": _field(schemas().of_definition(_METADATA)),
    }


def _field(schema: Schema) -> Field:
    return Field(schema, Zero.KEEP)
