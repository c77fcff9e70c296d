"""Path elements: the steps of a path into an object, in the notation of managedFields.

    f:name            a field of an object, or a key of a map
    k:{"name":"c"}    an item of an associative list (`x-kubernetes-list-type: map`), by its keys
    v:"x"             an item of a set (`x-kubernetes-list-type: set`), by its value
    i:0               an item by its index; read from clients, never written

Given `spec.containers` with the list keys `(name)`, the item `{"name": "c", "image": "i"}` has the
element `k:{"name":"c"}`. Two items with equal elements are duplicates.

upstream: sigs.k8s.io/structured-merge-diff/fieldpath/{element,serialize-pe}.go, typed/helpers.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import msgspec

from fairlead.api.text.field_problem import quoted
from fairlead.api.text.integer import parse_int64
from fairlead.api.text.nesting import is_too_deep
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.gotext.value import format_float, json_iterator_text
from fairlead.apiserver.schema.model import ANYTHING, ElementRelationship, Schema, Type, Zero
from fairlead.apiserver.schema.zero_value import zero_value

SELF: Final = "."
CACHE_SIZE: Final = 4_096

_ABSENT: Final = object()
_COMPOSITE: Final = (Type.OBJECT, Type.MAP, Type.LIST, Type.ANY)
_PREFIXES: Final = ("f:", "k:", "v:", "i:")
# Elements whose order as text may differ from the order of the values in them.
_ORDERED_BY_VALUE: Final = re.compile(
    r"v:-?\d|k:.*:-?\d|[vk]:.*[\x20!\\]|[vk]:.*(true|false|null)|i:"
)


class ItemKeyError(ValueError):
    """An item of a set or associative list has no usable key; the message gives the reason."""


# --- notation -------------------------------------------------------------------------------


def field_element(name: str) -> str:
    """Return the path element for a field or a map key."""
    return f"f:{name}"


def key_element(keys: dict[str, Any]) -> str:
    """Return the path element for the associative list item with these `keys`."""
    return f"k:{json_iterator_text({name: _canonical_number(keys[name]) for name in sorted(keys)})}"


def value_element(value: Any) -> str:
    """Return the path element for the set item with this `value`."""
    return f"v:{json_iterator_text(_canonical_number(value))}"


def _canonical_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


@text_cache(maxsize=CACHE_SIZE)
def canonical_element(element: str) -> str:
    """Return the client's path element in this server's notation; "" if its prefix is unknown.

    Raises ValueError if `element` is not a path element.
    """
    # upstream: structured-merge-diff/fieldpath/serialize-pe.go:DeserializePathElement
    prefix, rest = element[:2], element[2:]
    if prefix[1:] != ":":
        raise ValueError(f"{element!r} is not a path element")
    if prefix not in _PREFIXES:
        return ""  # a newer version may define this prefix; upstream skips the element, too
    if prefix == "f:":
        return element
    if prefix == "i:":
        number = parse_int64(rest)
        if number is None:
            raise ValueError(f"{element!r} is not a path element")
        return f"i:{number}"
    try:
        value = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(f"{element!r} is not a path element") from None
    if is_too_deep(value):  # the value is decoded again later, with a deeper stack
        raise ValueError(f"{element!r} is not a path element")
    if prefix == "v:":
        return value_element(value)
    if not isinstance(value, dict):
        raise ValueError(f"{element!r} is not a path element")  # noqa: TRY004 - client's input
    return key_element(value)


def in_order(elements: Iterable[str]) -> list[str]:
    """Return `elements` in upstream's order: sorted by the values that they contain."""
    # upstream: fieldpath/element.go:PathElement.Compare
    found = list(elements)
    # Most elements are fields, whose texts sort like their names.
    if not any(map(_ORDERED_BY_VALUE.match, found)):
        return sorted(found)
    return sorted(found, key=_sort_key)


def _sort_key(element: str) -> tuple[int, list[tuple[str, int, Any]]]:
    prefix, rest = element[:2], element[2:]
    if element == SELF:
        return -1, []
    if prefix in ("f:", "i:"):
        return _PREFIXES.index(prefix), [("", 0, rest if prefix == "f:" else int(rest))]
    content = msgspec.json.decode(rest)
    members = content.items() if prefix == "k:" else (("", content),)
    return _PREFIXES.index(prefix), [(name, *_comparable(value)) for name, value in members]


def _comparable(value: Any) -> tuple[int, Any]:
    # upstream: structured-merge-diff/value/value.go:Compare
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case None:
            return 5, ""
        case _:
            return 3 if isinstance(value, list) else 4, json_iterator_text(value)


def element_text(element: str) -> str:
    """Return the text of `element` in error messages: `.image`, `[name="c"]`, `[="x"]`, `[0]`."""
    # upstream: element.go:PathElement.String
    prefix, rest = element[:2], element[2:]
    if prefix == "f:":
        return f".{rest}"
    if prefix == "i:":
        return f"[{rest}]"
    content = msgspec.json.decode(rest)
    if prefix == "v:":
        return f"[={_value_text(content)}]"
    return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in content.items()) + "]"


def _value_text(value: Any) -> str:
    # upstream: structured-merge-diff/value/value.go:ToString
    match value:
        case str():
            return quoted(value)
        case list():
            return f"[{','.join(map(_value_text, value))}]"
        case dict():
            return "".join(f"{key}={_value_text(item)}" for key, item in value.items())
        case float():
            return format_float(value)
        case _:
            return json_iterator_text(value)


# --- walking by schema ----------------------------------------------------------------------


def is_leaf(schema: Schema, value: Any) -> bool:
    """Return whether `value` is one field, without fields below it.

    The result is True for an atomic value, a scalar, and a value of the wrong type.
    """
    if schema.topology is ElementRelationship.ATOMIC or not is_composite(schema):
        return True
    return value is not None and not isinstance(value, list if schema.type is Type.LIST else dict)


def is_composite(schema: Schema) -> bool:
    """Return whether values of the type `schema` can contain fields or items."""
    return schema.type in _COMPOSITE


def inner_schema(schema: Schema, element: str) -> Schema:
    """Return the type of the value at `element` in a value of type `schema`."""
    if schema.type is Type.LIST:
        return schema.items or ANYTHING
    return member_schema(schema, element[2:])


def member_schema(schema: Schema, key: str) -> Schema:
    """Return the type of the field or map value `key` in a value of type `schema`."""
    known = schema.fields.get(key)
    return known.schema if known else schema.items or ANYTHING


def items_by_element(schema: Schema, value: list[Any] | None) -> Iterator[tuple[str, Any]]:
    """Yield (element, item) for each item of a set or associative list. Raises ItemKeyError."""
    for item in value or ():
        yield item_element(schema, item), item


def items_by_known_element(schema: Schema, value: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (path element, item) for each list item; ("", item) if the item has no usable key."""
    for item in value:
        try:
            yield item_element(schema, item), item
        except ItemKeyError:
            yield "", item


def item_element(schema: Schema, item: Any) -> str:
    """Return the path element of the list item `item`. Raises ItemKeyError.

    If `item` lacks a list key, the path element contains the key's default. A Service port
    `{"port": 80}` has the path element `k:{"port":80,"protocol":"TCP"}`.
    """
    if not schema.keys:
        if item is None or isinstance(item, dict | list):
            raise ItemKeyError(_set_item_problem(item))
        return value_element(item)
    if not isinstance(item, dict):
        found = "a null element" if item is None else "non-map elements"
        raise ItemKeyError(f"associative list with keys may not have {found}")
    given = tuple(map(item.get, schema.keys, repeat(_ABSENT)))
    try:
        return _key_element(schema, *given)
    except TypeError:  # a key's value is a list or object, which the cache cannot hash
        return _key_element.__wrapped__(schema, *given)


# Lists have few keys, and objects of one kind use the same names again and again.
@lru_cache(maxsize=CACHE_SIZE, typed=True)
def _key_element(schema: Schema, *given: Any) -> str:
    defaults = schema.items.key_defaults if schema.items else {}
    keys: dict[str, Any] = {}
    for key, value in zip(schema.keys, given, strict=True):
        if value is not _ABSENT:
            keys[key] = value  # null is a key value like any other
            continue
        default = defaults.get(key, _required_key_default(schema, key))
        if default is not None:
            keys[key] = default
    if not keys:
        listed = " ".join(map(quoted, schema.keys))
        raise ItemKeyError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _set_item_problem(item: Any) -> str:
    # upstream: typed/helpers.go:setItemToPathElement
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    found = "an explicit null" if item is None else "a map type"
    return f"associative list without keys has an element that's {found}"


def _required_key_default(schema: Schema, key: str) -> Any:
    """Return the zero value of the list key `key` if Go always serializes `key`; otherwise None.

    Go always serializes a field without `omitempty`.
    """
    known = schema.items.fields.get(key) if schema.items else None
    return zero_value(known.schema) if known and known.zero is Zero.EMIT else None
