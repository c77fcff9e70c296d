"""The schema of a type: an object that refers to the schemas of its fields.

Schemas are shared and created on demand, so a type may contain itself. A `Field` states how the
field is encoded if it is empty (`Zero`). The type (`ElementRelationship`) and the field
(`merge_key`) define how patches and server-side apply merge lists and maps.

upstream: staging/src/k8s.io/api/*/types.go and api/openapi-spec/swagger.json
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.data_folder import data_folder
from fairlead.apiserver.schema.openapi_types import TypeTables, documented_types

VERSION: Final = "1.36"
_GZIP: Final = 16 + zlib.MAX_WBITS
# upstream: kube-openapi/pkg/schemaconv/openapi.go, which makes this type atomic
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"


class Type(StrEnum):
    """The type of a value.

    In JSON, OBJECT and MAP are objects, LIST is a list, and ANY is any value; the others are
    scalars.
    """

    STRING = "string"
    BYTES = "bytes"
    INT32 = "int32"
    INT64 = "int64"
    NUMBER = "number"
    BOOLEAN = "boolean"
    QUANTITY = "quantity"
    INT_OR_STRING = "intstr"
    TIME = "time"
    MICRO_TIME = "microtime"
    ANY = "any"
    OBJECT = "object"
    MAP = "map"
    LIST = "list"


class ElementRelationship(StrEnum):
    """How a list, map or object is merged and owned.

    An ATOMIC value is merged and owned as a whole. A GRANULAR object is merged and owned field by
    field. A GRANULAR map is merged and owned key by key. SET and MAP are relationships of lists,
    which are merged and owned item by item. An item of a SET is identified by its whole value. An
    item of a MAP is identified by the values of the fields in `Schema.keys`.
    """

    ATOMIC = "atomic"
    GRANULAR = "granular"
    SET = "set"
    MAP = "map"


class Zero(StrEnum):
    """The encoding of an empty field.

    DROP omits the field. KEEP writes the field if the client sent it. EMIT always writes the zero
    value of the field's type. NULL always writes null.
    """

    DROP = ""
    KEEP = "keep"
    EMIT = "emit"
    NULL = "null"


class Field(Struct, frozen=True):
    """A field of an object.

    `zero` is the encoding of the field if its value is empty. `merge_key` and `strategies` apply to
    strategic merge patches.
    """

    schema: Schema
    zero: Zero = Zero.DROP
    required: bool = False
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schema:
    """A type of values."""

    type: Type
    # How patches and server-side apply merge values of the type. If `type` is ANY and this is
    # GRANULAR, a JSON object is merged field by field, and any other value as a whole.
    topology: ElementRelationship = ElementRelationship.GRANULAR
    fields: Mapping[str, Field] = field(default_factory=dict)  # only of OBJECT types
    # The type of the items of a LIST, or of the values of a MAP. For an OBJECT, the type of the
    # fields that are not in `fields`.
    items: Schema | None = None
    # The fields that identify an item of a LIST whose `topology` is MAP. If an item omits a key,
    # the value of the key is taken from `items.key_defaults`.
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    definition: str = ""  # the full name of a named type

    @property
    def short_name(self) -> str:
        """The version and name of the type, such as `v1.Container` in type errors."""
        return ".".join(self.definition.split(".")[-2:])

    @property
    def long_name(self) -> str:
        """The group, version and name of the type, such as `core.v1.Event`.

        Types of two groups can have the same `short_name`.
        """
        return ".".join(self.definition.split(".")[-3:])


ANYTHING: Final = Schema(Type.ANY)


class _Composite(msgspec.Struct, frozen=True):
    """A list type or a map type; `list` is the element relationship of a list, "" for a map."""

    of: str | _Composite
    list: str = ""
    keys: tuple[str, ...] = ()
    atomic: bool = False


# A field of a type, as a row of the JSON tables. The attributes are the keys in these tables, so
# they are short. The first two are the type and the encoding of an empty field. Then follow whether
# the field is required, its merge key, its patch strategies, and whether it is granular.
class _FieldRow(msgspec.Struct, frozen=True):
    t: str | _Composite
    z: Zero = Zero.DROP
    r: bool = False
    k: str = ""
    s: tuple[str, ...] = ()
    g: bool = False


# A named type, as a row of the JSON tables. In order: the fields, the type (of a definition that is
# not an object), whether the type is atomic, and the defaults of keys.
class _Row(msgspec.Struct, frozen=True):
    f: dict[str, _FieldRow] = {}
    t: str | _Composite = ""
    a: bool = False
    d: dict[str, Any] = {}


class _Table(msgspec.Struct, frozen=True):
    version: str
    definitions: dict[str, _Row]
    kinds: dict[str, str]


class SchemaSet:
    """All types in one version of Kubernetes."""

    def __init__(self, content: bytes, documented: TypeTables) -> None:
        """`content` is a JSON table made by `tools/schema_table.py`.

        Types and kinds that the table lacks are added from `documented`.
        """
        self._table = msgspec.json.decode(content, type=_Table)
        for name, row in documented.definitions.items():
            self._table.definitions.setdefault(name, msgspec.convert(row, type=_Row))
        for name, definition in documented.kinds.items():
            self._table.kinds.setdefault(name, definition)
        self._made: dict[str, Schema] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every `group/version/Kind` that has a schema."""
        return tuple(self._table.kinds)

    def of_kind(self, api_version: str, kind: str) -> Schema | None:
        """Return the type of a kind's objects; None if the kind is not built in."""
        name = self._table.kinds.get(f"{api_version}/{kind}")
        return self.of_definition(name) if name else None

    def of_definition(self, name: str) -> Schema:
        """Return the type `name`, such as `io.k8s.api.core.v1.Container`.

        Raises KeyError if there is no such type.
        """
        made = self._made.get(name)
        if made is not None:
            return made
        row = self._table.definitions[name]
        if row.t:
            self._made[name] = schema = self._of_type(row.t)
            return schema
        fields: dict[str, Field] = {}
        topology = ElementRelationship.ATOMIC if row.a else ElementRelationship.GRANULAR
        schema = Schema(Type.OBJECT, topology, fields, key_defaults=row.d, definition=name)
        self._made[name] = schema if row.f else Schema(Type.ANY, definition=name)
        for key, one in row.f.items():
            fields[key] = Field(self._of_field(one), one.z, one.r, one.k, one.s)
        return self._made[name]

    def _of_field(self, row: _FieldRow) -> Schema:
        """Return the type of a field.

        The field may be granular although the definition of its type is atomic.
        """
        schema = self._of_type(row.t)
        return replace(schema, topology=ElementRelationship.GRANULAR) if row.g else schema

    def _of_type(self, name: str | _Composite) -> Schema:
        if isinstance(name, str):
            return self.of_definition(name[1:]) if name.startswith("#") else _scalar(name)
        items = self._of_type(name.of)
        if name.list:
            return Schema(Type.LIST, ElementRelationship(name.list), items=items, keys=name.keys)
        topology = ElementRelationship.ATOMIC if name.atomic else ElementRelationship.GRANULAR
        return Schema(Type.MAP, topology, items=items)


@cache
def _scalar(name: str) -> Schema:
    """Return the schema of the type `name`: a scalar such as `int32`, or `any#Definition`.

    A value of the type `any#Definition` can be any JSON value.
    """
    sort, _, definition = name.partition("#")
    topology = ElementRelationship.ATOMIC if definition == _RAW else ElementRelationship.GRANULAR
    return Schema(Type(sort), topology, definition=definition)


@cache
def schemas(version: str = VERSION) -> SchemaSet:
    """Return the types of a Kubernetes version, from the table shipped with Fairlead."""
    path = data_folder("fairlead.apiserver.schema").joinpath(f"{version}.json.gz")
    return SchemaSet(zlib.decompress(path.read_bytes(), _GZIP), documented_types())


@cache
def words(version: str = VERSION) -> Mapping[str, Mapping[str, str]]:
    """Return the descriptions of types and fields in the Kubernetes version `version`.

    The descriptions are keyed by type name, then by field name. The description of the type itself
    has the field name "".
    """
    path = data_folder("fairlead.apiserver.schema").joinpath(f"{version}-words.json.gz")
    content = zlib.decompress(path.read_bytes(), _GZIP)
    found = msgspec.json.decode(content, type=dict[str, dict[str, str]])
    return {**documented_types().words, **found}


def schema_of(api_version: str, kind: str) -> Schema | None:
    """Return the type of a built-in kind's objects; None for any other kind."""
    return schemas().of_kind(api_version, kind)
