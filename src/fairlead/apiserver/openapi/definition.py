"""Definitions: types as OpenAPI 3 describes them, with everything they refer to.

upstream: kube-openapi/pkg/builder3/openapi.go, kube-openapi/pkg/generators/openapi.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.decoding import zero_value
from fairlead.apiserver.schema.model import Field, Schema, Topology, Type, Zero, schemas, words

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
REFERENCE: Final = "#/components/schemas/"
TIME: Final = f"{META}.Time"
MICRO_TIME: Final = f"{META}.MicroTime"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
OBJECT_META: Final = f"{META}.ObjectMeta"

_SCALARS: Final[Mapping[Type, Json]] = {
    Type.STRING: {"type": "string"},
    Type.BYTES: {"type": "string", "format": "byte"},
    Type.INT32: {"type": "integer", "format": "int32"},
    Type.INT64: {"type": "integer", "format": "int64"},
    Type.NUMBER: {"type": "number", "format": "double"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.ANY: {"type": "object"},
}
_NAMED: Final[Mapping[Type, str]] = {
    Type.TIME: TIME,
    Type.MICRO_TIME: MICRO_TIME,
    Type.QUANTITY: QUANTITY,
    Type.INT_OR_STRING: INT_OR_STRING,
}
_OF_NAMED: Final[Mapping[str, Json]] = {
    TIME: {"type": "string", "format": "date-time"},
    MICRO_TIME: {"type": "string", "format": "date-time"},
    QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}
_DEFAULTED: Final = (Type.STRING, Type.INT32, Type.INT64, Type.NUMBER, Type.BOOLEAN)


def with_references(names: list[str]) -> dict[str, Json]:
    """The definitions called `names` and all that they refer to, in order of their names."""
    made: dict[str, Json] = {}
    rest = list(names)
    while rest:
        name = rest.pop()
        if name not in made:
            made[name] = definition(name)
            rest += references(made[name])
    return {name: made[name] for name in sorted(made)}


def references(document: Any) -> Iterator[str]:
    """The definitions that a document refers to."""
    if isinstance(document, dict):
        target = document.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(REFERENCE)
        for value in document.values():
            yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


def definition(name: str) -> Json:
    """One definition. Raises KeyError."""
    described = _described(name, "")
    if name in _OF_NAMED:
        return {**described, **_OF_NAMED[name]}
    if name not in schemas().definitions:
        return {**described, "type": "object"}
    schema = schemas().of_definition(name)
    if schema.type is not Type.OBJECT:
        return {**described, **_typed(schema)}
    made: Json = {**described, "type": "object"}
    required = [key for key, field in schema.fields.items() if field.required]
    if required:
        made["required"] = required
    made["properties"] = {
        key: {**_described(name, key), **_property(field)} for key, field in schema.fields.items()
    }
    if schema.topology is Topology.ATOMIC:
        made["x-kubernetes-map-type"] = "atomic"
    return made


def _described(name: str, field: str) -> Json:
    text = words().get(name, {}).get(field, "")
    return {"description": text} if text else {}


def _property(field: Field) -> Json:
    schema = field.schema
    made = _typed(schema)
    if "$ref" in made:
        made = {"allOf": [made]}
    if field.zero is Zero.EMIT and schema.type is Type.OBJECT:
        made["default"] = {}
    elif field.zero is Zero.EMIT and schema.type in _DEFAULTED:
        made["default"] = zero_value(schema)
    if field.merge_key:
        made["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.strategies:
        made["x-kubernetes-patch-strategy"] = ",".join(field.strategies)
    return made


def _typed(schema: Schema) -> Json:
    named = _NAMED.get(schema.type) or schema.definition
    if named:
        return {"$ref": f"{REFERENCE}{named}"}
    if schema.items is None:
        return dict(_SCALARS[schema.type])
    if schema.type is Type.MAP:
        made: Json = {"type": "object", "additionalProperties": _typed(schema.items)}
        if schema.topology is Topology.ATOMIC:
            made["x-kubernetes-map-type"] = "atomic"
        return made
    made = {"type": "array", "items": _typed(schema.items)}
    if schema.topology is not Topology.GRANULAR:
        made["x-kubernetes-list-type"] = str(schema.topology)
    if schema.keys:
        made["x-kubernetes-list-map-keys"] = list(schema.keys)
    return made


def custom_name(kind: Kind) -> str:
    """`com.example.v1.Widget`: what the type of a custom resource is called."""
    return ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))


def custom_definitions(kind: Kind) -> dict[str, Json]:
    """The type of a custom resource and of its lists."""
    raw: Json = dict(kind.custom.schema.raw) if kind.custom else {}
    name = custom_name(kind)
    common = {key: definition(OBJECT_META_OWNER)["properties"][key] for key in _COMMON}
    properties = {**(raw.get("properties") or {}), **common}
    gvk = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    items = {"type": "array", "items": {"$ref": f"{REFERENCE}{name}"}}
    return {
        name: {
            **raw,
            "type": "object",
            "properties": {
                **properties,
                "metadata": {"allOf": [{"$ref": f"{REFERENCE}{OBJECT_META}"}]},
            },
            "x-kubernetes-group-version-kind": [gvk],
        },
        f"{name}List": {
            "type": "object",
            "required": ["items"],
            "properties": {
                **common,
                "items": items,
                "metadata": {"allOf": [{"$ref": f"{REFERENCE}{META}.ListMeta"}]},
            },
            "x-kubernetes-group-version-kind": [{**gvk, "kind": kind.list_kind}],
        },
    }


OBJECT_META_OWNER: Final = "io.k8s.api.core.v1.ConfigMap"  # any kind: these fields are alike
_COMMON: Final = ("apiVersion", "kind")
