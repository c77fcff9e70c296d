"""Typing problems: why a value is not of its type, in the words of upstream's library.

Unknown fields, values of other types, items of lists that cannot be told apart. A value that is
null is of every type.

upstream: sigs.k8s.io/structured-merge-diff/typed/{validate,helpers}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.gotext.value import go_kind, go_syntax, go_text
from fairlead.apiserver.patch.managedfields.field_set import step_text
from fairlead.apiserver.patch.managedfields.path_element import (
    NamelessItemError,
    inner_schema,
    is_composite,
    item_step,
    member_schema,
)
from fairlead.apiserver.schema.model import Schema, Topology, Type

_NUMERIC: Final = (Type.INT32, Type.INT64, Type.NUMBER)
_TEXTS: Final = (Type.STRING, Type.BYTES)


def stated_problems(schema: Schema, value: Any, *, may_repeat: bool = False) -> str:
    """All that is wrong with `value`, as upstream prints it; "" where nothing is."""
    wrong = list(problems(schema, value, may_repeat=may_repeat))
    return "errors:\n  " + "\n  ".join(wrong) if len(wrong) > 1 else "".join(wrong)


def problems(
    schema: Schema, value: Any, path: str = "", *, may_repeat: bool = False
) -> Iterator[str]:
    """What is wrong with `value`, each with its path; `may_repeat`: lists may have items twice."""
    if value is None:
        return
    if schema.type is Type.LIST:
        yield from _list_problems(schema, value, path, may_repeat=may_repeat)
    elif not is_composite(schema):
        yield from _scalar_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _member_problems(schema, value, path, may_repeat=may_repeat)
    elif schema.type is not Type.ANY:
        yield _told(path, f"expected map, got {_wrapped(value)}")


def _member_problems(
    schema: Schema, value: dict[str, Any], path: str, *, may_repeat: bool
) -> Iterator[str]:
    for key in sorted(value):
        if schema.type is Type.OBJECT and key not in schema.fields and schema.items is None:
            yield f"{path}.{key}: field not declared in schema"
            return  # upstream looks no further, either
        inner = member_schema(schema, key)
        yield from problems(inner, value[key], f"{path}.{key}", may_repeat=may_repeat)


def _list_problems(schema: Schema, value: Any, path: str, *, may_repeat: bool) -> Iterator[str]:
    if not isinstance(value, list):
        yield _told(path, f"expected list, got {_wrapped(value)}")
        return
    seen: dict[str, None] = {}
    for place, item in enumerate(value):
        step = f"i:{place}"
        if schema.topology is not Topology.ATOMIC:
            try:
                step = item_step(schema, item)
            except NamelessItemError as cause:
                yield _told(path, f"element {place}: {cause}")
                return
            if step in seen and not may_repeat:
                yield _told(path, f"duplicate entries for key {step_text(step)}")
            seen[step] = None
        inner = inner_schema(schema, step)
        yield from problems(inner, item, path + step_text(step), may_repeat=may_repeat)


def _scalar_problems(schema: Schema, value: Any, path: str) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if schema.type in _NUMERIC:
        if not is_number:
            yield _told(path, f"expected numeric (int or float), got {go_kind(value)}")
    elif schema.type in _TEXTS:
        if not isinstance(value, str):
            yield _told(
                path, f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
            )
    elif schema.type is Type.BOOLEAN:
        if not isinstance(value, bool):
            yield _told(path, f"expected boolean, got {_wrapped(value)}")
    elif isinstance(value, dict | list):
        yield _told(path, f"expected any scalar, got {_wrapped(value)}")


def _told(path: str, what: str) -> str:
    return f"{path}: {what}" if path else what


def _wrapped(value: Any) -> str:
    """As upstream's wrapper of a value is printed."""
    return f"&{{{go_text(value)}}}"
