"""The types of API groups for which an OpenAPI document replaces the generated tables.

Each file `data/openapi/<group>_<version>.json` is an OpenAPI v3 document. The document has the form
that an API server publishes (`kubectl get --raw /openapi/v3/apis/<group>/<version>`). Only
`components.schemas` is read. The file adds the types that the generated tables do not have.

A published document sorts fields by name. It contains neither the protobuf numbers of fields nor
the encoding of empty fields. The files in `data/openapi` add these facts as follows:

    order of the fields        the fields are in the order of the Go type; they are encoded in this
                               order
    x-protobuf-number          the field's number in protobuf; by default, the number of the
                               previous field plus one
    x-go-zero                  how an empty field is encoded: "keep", "emit" or "null" as in
                               `model.Zero`, or "drop". By default, required fields are always
                               written, and so are structs with a `default`. An optional struct,
                               number, boolean, quantity, IntOrString, timestamp or inline `any`
                               value is kept if the client sent it. All other empty fields are
                               dropped

upstream: kube-openapi/pkg/builder3/openapi.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.data_folder import data_folder
from fairlead.api.json import Json

NUMBER: Final = "x-protobuf-number"
ZERO: Final = "x-go-zero"
TYPE_META: Final = ("kind", "apiVersion")
SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}
_SCALARS: Final = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "number",
    ("boolean", ""): "boolean",
}
_SHARED_KINDS: Final = {
    "DeleteOptions": "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "WatchEvent": "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
}
_POINTERS: Final = frozenset(
    ("int32", "int64", "number", "boolean", "quantity", "intstr", "time", "microtime", "any")
)


class TypeTables(Struct, frozen=True):
    """Types by name, in the form of the generated tables.

    `definitions` are rows as `model` reads them. `kinds` are the names of types by
    `group/version/Kind`. `words` are descriptions by type and field. `numbers` are field names by
    type and protobuf number.
    """

    definitions: dict[str, Json] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)


@cache
def documented_types() -> TypeTables:
    """Return the types of all documents in `data/openapi`."""
    made = TypeTables()
    folder = data_folder("fairlead.apiserver.schema").joinpath("openapi")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        add_document(made, msgspec.json.decode(file.read_bytes()))
    return made


def add_document(tables: TypeTables, document: Json) -> None:
    """Add the types of an OpenAPI v3 document to `tables`."""
    for name, body in document["components"]["schemas"].items():
        if name in SPECIAL:
            continue
        tables.definitions[name] = _row(body)
        tables.words[name] = descriptions(body)
        tables.numbers[name] = _numbers(body)
        for kind, api_version in _kinds(body):
            tables.kinds[f"{api_version}/{kind}"] = name
            for shared, definition in _SHARED_KINDS.items():
                tables.kinds[f"{api_version}/{shared}"] = definition


def _kinds(body: Json) -> Iterator[tuple[str, str]]:
    """Yield (kind, apiVersion) of the objects that a type describes.

    Kinds that belong to every group, such as DeleteOptions, are left out. A type that is not a kind
    yields nothing.
    """
    for one in body.get("x-kubernetes-group-version-kind", ()):
        if one["kind"] not in _SHARED_KINDS:
            yield (
                one["kind"],
                f"{one['group']}/{one['version']}" if one["group"] else one["version"],
            )


def descriptions(body: Json) -> dict[str, str]:
    """Return the descriptions of a type's fields; the key "" has the description of the type."""
    found = {"": body.get("description", "")}
    for name, schema in body.get("properties", {}).items():
        found[name] = schema.get("description", "")
    return {name: text for name, text in found.items() if text}


def _row(body: Json) -> Json:
    required = set(body.get("required", ()))
    is_object = "x-kubernetes-group-version-kind" in body
    properties = body.get("properties", {})
    fields = sorted(properties, key=lambda name: name not in TYPE_META)
    row: Json = {
        "f": {
            name: _field_row(name, properties[name], needed=name in required, top=is_object)
            for name in fields
        }
    }
    if body.get("x-kubernetes-map-type") == "atomic":
        row["a"] = True
    return row


def _field_row(name: str, schema: Json, *, needed: bool, top: bool) -> Json:
    type_ = type_of(schema)
    row = {"t": type_, "z": _zero(name, schema, type_, needed=needed, top=top), "r": needed}
    return row | merge_facts(schema)


def merge_facts(schema: Json) -> Json:
    """Return the part of a field's row in `TypeTables` that tells how patches merge the field."""
    found: Json = {}
    if _reference(schema) and schema.get("x-kubernetes-map-type") == "granular":
        found["g"] = True
    if "x-kubernetes-patch-merge-key" in schema:
        found["k"] = schema["x-kubernetes-patch-merge-key"]
    if "x-kubernetes-patch-strategy" in schema:
        found["s"] = schema["x-kubernetes-patch-strategy"].split(",")
    return found


def _zero(name: str, schema: Json, type_: Any, *, needed: bool, top: bool) -> str:
    if ZERO in schema:
        return "" if schema[ZERO] == "drop" else str(schema[ZERO])
    is_struct = isinstance(type_, str) and type_.startswith("#")
    if top and name in TYPE_META:
        return "keep"
    if needed or (is_struct and "default" in schema):
        return "emit"
    return "keep" if is_struct or (isinstance(type_, str) and type_ in _POINTERS) else ""


def _numbers(body: Json) -> dict[str, str]:
    """Return the field names by protobuf number; the numbers are decimal text.

    A field without a number has the number of the previous field plus one.
    """
    found: dict[str, str] = {}
    number = 0
    for name, schema in body.get("properties", {}).items():
        if name not in TYPE_META:
            number = schema.get(NUMBER, number + 1)
            found[str(number)] = name
    return found


def type_of(schema: Json) -> Any:
    """Return the type of a field.

    The type of a scalar is the scalar's name, and the type of an object is `#Definition`. The type
    of a list or of a map is a JSON object.
    """
    name = _reference(schema)
    if name:
        special = SPECIAL.get(name, f"#{name}")
        return f"any#{name}" if special == "any" else special
    stated = schema.get("type", [])
    found = [one for one in (stated if isinstance(stated, list) else [stated]) if one != "null"]
    if found == ["array"]:
        return _list_type(schema)
    if found == ["object"] and isinstance(schema.get("additionalProperties"), dict):
        composite: Json = {"of": type_of(schema["additionalProperties"])}
        if schema.get("x-kubernetes-map-type") == "atomic":
            composite["atomic"] = True
        return composite
    if found == ["object"] or not found:
        return "any"
    return _SCALARS[found[0], schema.get("format", "")]


def _list_type(schema: Json) -> Json:
    composite: Json = {"of": type_of(schema["items"]), "list": "atomic"}
    if "x-kubernetes-list-type" in schema:
        composite["list"] = schema["x-kubernetes-list-type"]
    if "x-kubernetes-list-map-keys" in schema:
        composite["keys"] = schema["x-kubernetes-list-map-keys"]
    return composite


def _reference(schema: Mapping[str, Any]) -> str:
    """Return the name of the type that a schema refers to; "" for an inline type."""
    wrapped = schema.get("allOf") or (schema,)
    target = wrapped[0].get("$ref")
    return target.rpartition("/")[2] if isinstance(target, str) else ""
