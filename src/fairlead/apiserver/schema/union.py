"""Union types of CustomResourceDefinitions, such as JSONSchemaPropsOrBool.

In Go these types have their own UnmarshalJSON, which does not report unknown fields. So unknown
fields below `items` or `additionalProperties` are dropped without a warning or an error.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fairlead.apiserver.schema.model import ElementRelationship, Schema, Type, schemas

_PACKAGE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_OR_LIST: Final = f"{_PACKAGE}.JSONSchemaPropsOrArray"
_OR_BOOLEAN: Final = f"{_PACKAGE}.JSONSchemaPropsOrBool"
_OR_TEXTS: Final = f"{_PACKAGE}.JSONSchemaPropsOrStringArray"
NEITHER: Final = "boolean or JSON schema expected"

Read = Callable[[Schema, Any], Any]


class NeitherError(ValueError):
    """The value fits no member of a union; the message is upstream's."""


def is_union(schema: Schema) -> bool:
    """Return whether `schema` is one of the union types, such as JSONSchemaPropsOrBool."""
    return schema.definition in (_OR_LIST, _OR_BOOLEAN, _OR_TEXTS)


def read_union(schema: Schema, value: Any, read: Read) -> Any:
    """Return `value`, decoded by `read` as one of the types of the union `schema`.

    If `value` does not have the JSON type of one of these types, return None. For the union
    JSONSchemaPropsOrBool, raise NeitherError instead.
    """
    match value:
        case dict():
            return read(_props(), value)
        case list() if schema.definition == _OR_LIST:
            return read(_list_of(_props()), value)
        case list() if schema.definition == _OR_TEXTS:
            return read(_list_of(_TEXT), value)
        case bool() if schema.definition == _OR_BOOLEAN:
            return value
        case _ if schema.definition == _OR_BOOLEAN:
            raise NeitherError(NEITHER)
        case _:
            return None


_TEXT: Final = Schema(Type.STRING)


def _props() -> Schema:
    return schemas().of_definition(f"{_PACKAGE}.JSONSchemaProps")


@cache
def _list_of(items: Schema) -> Schema:
    return Schema(Type.LIST, ElementRelationship.ATOMIC, items=items)
