"""Refuses values that do not have the type of their field or argument.

Structs and functions do not check the types of their values. Values from the command line have the
right types. Values from a script may have wrong types.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from msgspec import Struct, structs

from fairlead.whatif.input.error import InputError


def refuse_wrong_types(options: Struct) -> None:
    """Raise InputError if a field of `options` has a value of another type than its annotation.

    A field for a tuple also takes a list, but not a single string: otherwise, `drain="n1"` would
    drain the nodes `n` and `1`.
    """
    for name, kind in _fields(type(options)):
        value = getattr(options, name)
        if get_origin(kind) is not tuple:
            problem = "" if _is(value, kind) else _mismatch(value, kind)
        elif isinstance(value, str):
            problem = f"takes a tuple such as ({value!r},), not the text {value!r}"
        elif not isinstance(value, tuple | list):
            problem = _mismatch(value, tuple)
        else:
            item = get_args(kind)[0]
            problem = next((_mismatch(one, item) for one in value if not _is(one, item)), "")
        if problem:
            raise InputError(type(options).__name__, problem, field=name)


def require_type(function: str, argument: str, value: object, kind: Any) -> None:
    """Raise InputError if `value`, the value of an argument of `function`, is not a `kind`.

    `kind` is a class or a union of classes.
    """
    if not _is(value, kind):
        raise InputError(function, _mismatch(value, kind), field=argument)


@cache
def _fields(options: type[Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, one.type) for one in structs.fields(options))


def _is(value: object, kind: Any) -> bool:
    """Return whether `value` has the type `kind`, a class or a union of classes."""
    if _is_union(kind):
        return any(_is(value, one) for one in get_args(kind))
    if kind is int and isinstance(value, bool):
        return False
    return isinstance(value, get_origin(kind) or kind)


def _mismatch(value: object, kind: Any) -> str:
    kinds = get_args(kind) if _is_union(kind) else (kind,)
    words = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
    return f"expected {words}, got {type(value).__name__} {value!r:.50}"


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)
