"""A custom resource's type as those see it who own its fields: appliers and managers.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.custom.structural import Structural
from fairlead.apiserver.schema.model import Field, Schema, Topology, Type, Zero, schemas

_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Final = {
    "string": Type.STRING,
    "integer": Type.INT64,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}
_LISTS: Final = {"set": Topology.SET, "map": Topology.MAP}


def _deduced() -> Schema:
    """The type of what nobody has described: maps have fields, everything else is one value."""
    schema = Schema(Type.MAP)
    # A type that contains itself; nobody else has seen it yet.
    object.__setattr__(schema, "items", schema)
    return schema


DEDUCED: Final = _deduced()


def object_type(schema: Structural) -> Schema:
    """The type of whole objects: with the fields that all objects have."""
    made = field_type(schema)
    if made.type is not Type.OBJECT:
        return made
    common = {
        "apiVersion": _field(Schema(Type.STRING)),
        "kind": _field(Schema(Type.STRING)),
        "metadata": _field(schemas().of_definition(_METADATA)),
    }
    return Schema(Type.OBJECT, fields={**made.fields, **common})


def field_type(schema: Structural) -> Schema:
    """The type of a value."""
    if schema.is_int_or_string:
        return Schema(Type.INT_OR_STRING)
    if schema.keeps_unknown or schema.is_embedded:
        return DEDUCED
    if schema.type == "array":
        return _list(schema)
    if schema.type == "object":
        return _object(schema)
    return Schema(_SCALARS.get(schema.type, Type.ANY))


def _list(schema: Structural) -> Schema:
    topology = _LISTS.get(schema.raw.get("x-kubernetes-list-type", ""), Topology.ATOMIC)
    keys = tuple(schema.raw.get("x-kubernetes-list-map-keys") or ())
    items = field_type(schema.items) if schema.items else DEDUCED
    return Schema(Type.LIST, topology, items=items, keys=keys)


def _object(schema: Structural) -> Schema:
    is_atomic = schema.raw.get("x-kubernetes-map-type") == "atomic"
    topology = Topology.ATOMIC if is_atomic else Topology.GRANULAR
    if schema.additional is not None:
        return Schema(Type.MAP, topology, items=field_type(schema.additional))
    required = schema.raw.get("required") or ()
    fields = {
        name: _field(field_type(inner), required=name in required)
        for name, inner in schema.properties.items()
    }
    defaults = {
        name: inner.raw["default"]
        for name, inner in schema.properties.items()
        if "default" in inner.raw
    }
    return Schema(Type.OBJECT, topology, fields=fields, key_defaults=defaults)


def _field(schema: Schema, *, required: bool = False) -> Field:
    return Field(schema, Zero.KEEP, required, merge_key="", strategies=())
