"""Validation of values against their schema, with the messages of structured-merge-diff.

The errors are undeclared fields, values of the wrong type, and list items with the same key. Null
is valid for every type.

upstream: sigs.k8s.io/structured-merge-diff/typed/{validate,helpers}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.gotext.value import format_go_syntax, format_v, type_name
from fairlead.apiserver.patch.managedfields.path_element import (
    ItemKeyError,
    element_text,
    inner_schema,
    is_composite,
    item_element,
    member_schema,
)
from fairlead.apiserver.schema.model import ElementRelationship, Schema, Type

_NUMERIC: Final = (Type.INT32, Type.INT64, Type.NUMBER)
_TEXTS: Final = (Type.STRING, Type.BYTES)


def validation_errors(schema: Schema, value: Any, *, may_repeat: bool = False) -> str:
    """Return the error text for all problems of `value`, as upstream prints it; "" if it is valid.

    `may_repeat` allows duplicate list items.
    """
    wrong = list(validation_problems(schema, value, may_repeat=may_repeat))
    return "errors:\n  " + "\n  ".join(wrong) if len(wrong) > 1 else "".join(wrong)


def validation_problems(
    schema: Schema, value: Any, path: str = "", *, may_repeat: bool = False
) -> Iterator[str]:
    """Yield the problems of `value`, each with its path.

    `may_repeat` allows duplicate list items.
    """
    if value is None:
        return
    if schema.type is Type.LIST:
        yield from _list_problems(schema, value, path, may_repeat=may_repeat)
    elif not is_composite(schema):
        yield from _scalar_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _member_problems(schema, value, path, may_repeat=may_repeat)
    elif schema.type is not Type.ANY:
        yield _at(path, f"expected map, got {_wrapped(value)}")


def _member_problems(
    schema: Schema, value: dict[str, Any], path: str, *, may_repeat: bool
) -> Iterator[str]:
    for key in sorted(value):
        if schema.type is Type.OBJECT and key not in schema.fields and schema.items is None:
            yield f"{path}.{key}: field not declared in schema"
            return  # as in upstream, only the first undeclared field
        inner = member_schema(schema, key)
        yield from validation_problems(inner, value[key], f"{path}.{key}", may_repeat=may_repeat)


def _list_problems(schema: Schema, value: Any, path: str, *, may_repeat: bool) -> Iterator[str]:
    if not isinstance(value, list):
        yield _at(path, f"expected list, got {_wrapped(value)}")
        return
    seen: dict[str, None] = {}
    for index, item in enumerate(value):
        element = f"i:{index}"
        if schema.topology is not ElementRelationship.ATOMIC:
            try:
                element = item_element(schema, item)
            except ItemKeyError as cause:
                yield _at(path, f"element {index}: {cause}")
                return
            if element in seen and not may_repeat:
                yield _at(path, f"duplicate entries for key {element_text(element)}")
            seen[element] = None
        inner = inner_schema(schema, element)
        yield from validation_problems(
            inner, item, path + element_text(element), may_repeat=may_repeat
        )


def _scalar_problems(schema: Schema, value: Any, path: str) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if schema.type in _NUMERIC:
        if not is_number:
            yield _at(path, f"expected numeric (int or float), got {type_name(value)}")
    elif schema.type in _TEXTS:
        if not isinstance(value, str):
            yield _at(
                path,
                f"expected string, got &value.valueUnstructured{{Value:{format_go_syntax(value)}}}",
            )
    elif schema.type is Type.BOOLEAN:
        if not isinstance(value, bool):
            yield _at(path, f"expected boolean, got {_wrapped(value)}")
    elif isinstance(value, dict | list):
        yield _at(path, f"expected any scalar, got {_wrapped(value)}")


def _at(path: str, what: str) -> str:
    return f"{path}: {what}" if path else what


def _wrapped(value: Any) -> str:
    """Return `value` in `&{}`, as Go prints the struct in which upstream wraps a value."""
    return f"&{{{format_v(value)}}}"
