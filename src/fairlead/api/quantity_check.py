"""quantity_check: finds invalid quantities in the views of objects.

client-go parses quantities while it decodes an object (quantity.go: UnmarshalJSON). Fairlead's
views keep quantities as text. Custom resources and edited dumps can contain any text as a quantity,
so each object is checked once, when it is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import attrgetter
from typing import Any

from msgspec import Struct, inspect

from fairlead.api.quantity import QuantityError, parse_quantity

# Raises QuantityError if a quantity in the value does not parse.
_Parse = Callable[[Any], object]
_Type = inspect.Type


class WrongQuantity(Struct, frozen=True):
    """A quantity that does not parse: its `field`, such as `spec.capacity[cpu]`, and its text."""

    field: str
    text: str
    problem: str


@cache
def quantity_check(view: type[Struct]) -> Callable[[Struct], WrongQuantity | None] | None:
    """Return a check of the quantities in objects of `view`; None if `view` has no quantities.

    The check returns the first quantity that does not parse, or None if all quantities parse.
    """
    kind = inspect.type_info(view)
    parse = _parse_of(kind)
    return None if parse is None else partial(_first_wrong, kind, parse)


def _first_wrong(kind: _Type, parse: _Parse, value: Struct) -> WrongQuantity | None:
    try:
        parse(value)
    except QuantityError as cause:
        field, text = next(_wrong_fields(kind, value))
        return WrongQuantity(field.removeprefix("."), text, str(cause))
    return None


def _is_quantity(kind: _Type) -> bool:
    """Return whether the Python type `kind` is QuantityText, a union with str and float.

    No other field type in `fairlead.api.objects` is such a union.
    """
    types = [type(one) for one in kind.types] if isinstance(kind, inspect.UnionType) else ()
    return inspect.FloatType in types and inspect.StrType in types


def _parse_of(kind: _Type) -> _Parse | None:
    """Return a function that parses all quantities in a value of type `kind`.

    Returns None if the type contains no quantities.
    """
    if _is_quantity(kind):
        return parse_quantity
    match kind:
        case inspect.UnionType(types=types):
            return next((found for found in map(_parse_of, types) if found is not None), None)
        case inspect.DictType(value_type=item):
            parse = _parse_of(item)
            return None if parse is None else partial(_parse_values, parse)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            parse = _parse_of(item)
            return None if parse is None else partial(_parse_items, parse)
        case inspect.StructType():
            members = dict(_members(kind, ""))
            # Adds a name, because attrgetter returns a tuple only if it has at least two names.
            read = attrgetter(*members, "__class__")
            return partial(_parse_members, read, [*members.values()]) if members else None
    return None


def _members(kind: inspect.StructType, prefix: str) -> Iterator[tuple[str, _Parse]]:
    """Yield (name, function that parses its quantities) for each field of `kind` with quantities.

    The fields of inner structs have dotted names (`spec.capacity`), so that one attrgetter reads
    all fields. Every name begins with `prefix`.
    """
    for one in kind.fields:
        name = f"{prefix}{one.name}"
        if isinstance(one.type, inspect.StructType):
            yield from _members(one.type, f"{name}.")
            continue
        parse = _parse_of(one.type)
        if parse is not None:
            yield name, parse


def _parse_values(parse: _Parse, value: dict[str, Any]) -> None:
    for item in value.values():
        parse(item)


def _parse_items(parse: _Parse, value: tuple[Any, ...]) -> None:
    for item in value:
        parse(item)


def _parse_members(
    read: Callable[[Struct], tuple[Any, ...]], parses: list[_Parse], value: Struct
) -> None:
    for member, parse in zip(read(value), parses, strict=False):
        if member or member == "":  # "" is no quantity
            parse(member)


def _wrong_fields(kind: _Type, value: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the quantities in `value` that do not parse; a path begins with "."."""
    if value is None:
        return
    if _is_quantity(kind):
        try:
            parse_quantity(value)
        except QuantityError:
            yield "", str(value)
        return
    for step, item_type, item in _parts(kind, value):
        yield from ((f"{step}{rest}", text) for rest, text in _wrong_fields(item_type, item))


def _parts(kind: _Type, value: Any) -> Iterator[tuple[str, _Type, Any]]:
    """Yield (path in `value`, type, content) of each field, list item or map entry in `value`.

    If `kind` is a union, yield ("", type, `value`) for each of its types that contains quantities.
    """
    match kind:
        case inspect.UnionType(types=types):
            yield from (("", one, value) for one in types if _parse_of(one) is not None)
        case inspect.DictType(value_type=item):
            yield from ((f"[{key}]", item, one) for key, one in value.items())
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield from ((f"[{at}]", item, one) for at, one in enumerate(value))
        case inspect.StructType(fields=fields):
            for one in fields:
                yield f".{one.encode_name}", one.type, getattr(value, one.name)
