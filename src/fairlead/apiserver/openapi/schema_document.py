"""Types in OpenAPI: the entries of `components.schemas` (v3) or `definitions` (v2).

Descriptions are optional and come from `schema.model.words`.

upstream: k8s.io/kube-openapi/pkg/generators/openapi.go, pkg/builder3/util
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.facts import facts_of
from fairlead.api.json import Json
from fairlead.apiserver.schema.model import (
    ElementRelationship,
    Field,
    Schema,
    Type,
    Zero,
    schemas,
    words,
)

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
PATCH: Final = f"{META}.Patch"
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FIELDS: Final = f"{META}.FieldsV1"
_MICRO_TIME: Final = f"{META}.MicroTime"
_TIME: Final = f"{META}.Time"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_INTEGER_OR_TEXT: Final = [{"type": "integer"}, {"type": "string"}]
# Named types whose JSON values are scalars.
_NAMED: Final[Mapping[str, Json]] = {
    PATCH: {"type": "object"},
    _RAW: {"type": "object"},
    _FIELDS: {"type": "object"},
    _MICRO_TIME: {"type": "string", "format": "date-time"},
    _TIME: {"type": "string", "format": "date-time"},
    _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    _INT_OR_STRING: {"format": "int-or-string", "oneOf": _INTEGER_OR_TEXT},
    # Types without a schema: any value is allowed.
    f"{_EXTENSIONS}.JSON": {},
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": {},
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": {},
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": {},
}
_NAMES: Final = {
    Type.TIME: _TIME,
    Type.MICRO_TIME: _MICRO_TIME,
    Type.QUANTITY: _QUANTITY,
    Type.INT_OR_STRING: _INT_OR_STRING,
    Type.ANY: _RAW,
}
_SCALARS: Final[Mapping[Type, Json]] = {
    Type.STRING: {"type": "string"},
    Type.BYTES: {"type": "string", "format": "byte"},
    Type.INT32: {"type": "integer", "format": "int32"},
    Type.INT64: {"type": "integer", "format": "int64"},
    Type.NUMBER: {"type": "number", "format": "double"},
    Type.BOOLEAN: {"type": "boolean"},
}
_ZEROS: Final[Mapping[Type, Any]] = {
    Type.STRING: "",
    Type.INT32: 0,
    Type.INT64: 0,
    Type.NUMBER: 0,
    Type.BOOLEAN: False,
    Type.OBJECT: {},
}
# Types whose `required` list is in declared order instead of sorted by name.
_REQUIRED: Final[Mapping[str, list[str]]] = {
    f"{META}.APIResource": ["name", "singularName", "namespaced", "kind", "verbs"],
    f"{META}.Condition": ["type", "status", "lastTransitionTime", "reason", "message"],
    f"{META}.WatchEvent": ["type", "object"],
}
# Lists of whole objects and of verbs have no merge strategy.
_LISTS_WITHOUT_STRATEGY: Final = ("items", "verbs")


class Dialect(Struct, frozen=True):
    """The form of references to types in OpenAPI v2 or v3; `prefix` precedes a type's name.

    If `wraps_references` is set, a field's reference to a type is put into `allOf`.
    """

    prefix: str
    wraps_references: bool

    def reference(self, definition: str) -> Json:
        """Return a reference to the type called `definition`."""
        return {"$ref": self.prefix + definition}


V3: Final = Dialect("#/components/schemas/", wraps_references=True)
V2: Final = Dialect("#/definitions/", wraps_references=False)


class Types(Struct):
    """A collection of types; if it contains a type, it also contains the types that this one uses.

    If `described` is True, types and fields have descriptions.
    """

    dialect: Dialect
    described: bool = True
    _made: dict[str, Json] = field(default_factory=dict)

    def add(self, definitions: Iterable[str]) -> None:
        """Add `definitions` and all types that they refer to."""
        waiting = list(definitions)
        while waiting:
            definition = waiting.pop()
            if definition not in self._made:
                self._made[definition] = self._document(definition)
                waiting += _references(self._made[definition], self.dialect.prefix)

    def put(self, definition: str, document: Json) -> None:
        """Add the type `definition`, which the schema tables lack; `document` is its schema."""
        self._made[definition] = document

    def documents(self) -> dict[str, Json]:
        """Return all types, sorted by name."""
        return {name: self._made[name] for name in sorted(self._made)}

    def _document(self, definition: str) -> Json:
        named = _NAMED.get(definition)
        if named is not None:
            return {**_words(definition, "", self.described), **named}
        schema = schemas().of_definition(definition)
        document: Json = {**_words(definition, "", self.described), "type": "object"}
        if schema.topology is ElementRelationship.ATOMIC:
            document["x-kubernetes-map-type"] = "atomic"
        required = [name for name, member in schema.fields.items() if member.required]
        if required:
            document["required"] = _REQUIRED.get(definition, required)
        if schema.fields:
            document["properties"] = {
                name: self._member(definition, name, member)
                for name, member in sorted(schema.fields.items())
            }
        return document

    def _member(self, definition: str, name: str, member: Field) -> Json:
        document: Json = {**_words(definition, name, self.described)}
        if member.zero is Zero.EMIT and member.schema.type in _ZEROS:
            document["default"] = _ZEROS[member.schema.type]
        facts = facts_of(".".join(definition.split(".")[-3:]))
        if name in facts.published_defaults:
            document["default"] = facts.published_defaults[name]
        if name in facts.fields and facts.fields[name].published_values:
            document["enum"] = list(facts.fields[name].published_values)
        if member.merge_key:
            document["x-kubernetes-patch-merge-key"] = member.merge_key
        if member.strategies:
            document["x-kubernetes-patch-strategy"] = ",".join(member.strategies)
        if _is_opened(member.schema):
            document["x-kubernetes-map-type"] = "granular"
        return document | self._type(member.schema, name, wraps=self.dialect.wraps_references)

    def _type(self, schema: Schema, name: str, *, wraps: bool = False) -> Json:
        """Return a type's OpenAPI schema: a reference to a named type, or an inline schema.

        If `wraps` is True, a reference is put into allOf, so that the caller can add keywords
        beside it.
        """
        target = schema.definition or _NAMES.get(schema.type)
        if schema.type is Type.LIST and schema.items is not None:
            return {"type": "array", "items": self._type(schema.items, ""), **_listed(schema, name)}
        if schema.type is Type.MAP and schema.items is not None:
            return {"type": "object", "additionalProperties": self._type(schema.items, "")}
        if target:
            reference = self.dialect.reference(target)
            return {"allOf": [reference]} if wraps else reference
        return _SCALARS[schema.type]


def _is_opened(schema: Schema) -> bool:
    """Return whether the field schema `schema` is granular but the type of the field is atomic."""
    if schema.type is not Type.OBJECT or schema.topology is not ElementRelationship.GRANULAR:
        return False
    return schemas().of_definition(schema.definition).topology is ElementRelationship.ATOMIC


def _listed(schema: Schema, name: str) -> Json:
    if name in _LISTS_WITHOUT_STRATEGY and schema.topology is ElementRelationship.ATOMIC:
        return {}
    document: Json = {"x-kubernetes-list-type": schema.topology.value}
    if schema.keys:
        document["x-kubernetes-list-map-keys"] = list(schema.keys)
    return document


def _words(definition: str, name: str, described: bool) -> Json:  # noqa: FBT001 - passed on
    text = words().get(definition, {}).get(name, "") if described else ""
    return {"description": text} if text else {}


def _references(document: Any, prefix: str) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(prefix)
            else:
                yield from _references(value, prefix)
    elif isinstance(document, list):
        for item in document:
            yield from _references(item, prefix)
