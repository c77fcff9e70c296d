"""Documents for JSON patches, decoded only along the paths of the operations.

A part of a document has one of three forms:
- a decoded JSON value, which is never changed;
- JSON text (`msgspec.Raw`);
- a `PartialObject` or `PartialArray`, which contains parts.

An object or list is replaced by its partial form when an operation refers to one of its members or
items.

upstream: gopkg.in/evanphx/json-patch.v4/patch.go:lazyNode
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from fairlead.api.text.integer import parse_int64
from fairlead.apiserver.gotext.value import json_text
from fairlead.apiserver.patch.strategicpatch.directive import panic_error
from fairlead.apiserver.schema.gojson.json_text import parse_json

_END: Final = "-"
_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_decode_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class OperationError(Exception):
    """The operation cannot be applied. The text of the error is upstream's."""


class PartialObject:
    """An object whose members can be replaced."""

    __slots__ = ("members",)

    def __init__(self, members: dict[str, Any]) -> None:
        """Operations on this object change `members` itself, not a copy."""
        self.members = members

    def get(self, key: str) -> Any:
        """Return the member `key`; None if it does not exist."""
        return self.members.get(key)

    def set(self, key: str, value: Any) -> None:
        """Replace or add the member `key`."""
        self.members[key] = value

    def add(self, key: str, value: Any) -> None:
        """Replace or add the member `key`."""
        self.members[key] = value

    def remove(self, key: str) -> None:
        """Remove the member `key`. Raises OperationError if it does not exist."""
        if key not in self.members:
            raise OperationError(f"Unable to remove nonexistent key: {key}: missing value")
        del self.members[key]

    def opened(self, key: str) -> PartialObject | PartialArray:
        """Convert the member `key` to a PartialObject or PartialArray; return the new member.

        Raises OperationError if the member is a scalar or does not exist.
        """
        inner = self.members[key] = opened(self.members.get(key))
        return inner


class PartialArray:
    """A list whose items can be replaced.

    Methods that take an index `key` raise OperationError if the index is invalid.
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        """Operations on this list change `items` itself, not a copy."""
        self.items = items

    def get(self, key: str) -> Any:
        """Return the item at the index `key`."""
        return self.items[self._index(key)]

    def set(self, key: str, value: Any) -> None:
        """Replace the item at the index `key`."""
        self.items[self._index(key)] = value

    def add(self, key: str, value: Any) -> None:
        """Insert an item before the index `key`, or append it if `key` is "-"."""
        size = len(self.items) + 1
        if key == _END:
            self.items.append(value)
            return
        number = _number(key, f"value was not a proper array index: '{key}': ")
        self.items.insert(_checked(number, size), value)

    def remove(self, key: str) -> None:
        """Remove the item at the index `key`."""
        del self.items[self._index(key)]

    def opened(self, key: str) -> PartialObject | PartialArray:
        """Convert the item `key` to a PartialObject or PartialArray; return the new item."""
        index = self._index(key)
        inner = self.items[index] = opened(self.items[index])
        return inner

    def _index(self, key: str) -> int:
        return _checked(_number(key), len(self.items))


def _number(key: str, prefix: str = "") -> int:
    """Return `key` as a number.

    Raises OperationError if `key` is not a 64-bit integer. The text of the error begins with
    `prefix`.
    """
    is_number = _INDEX.fullmatch(key) is not None
    number = parse_int64(key) if is_number else None
    if number is None:
        problem = "value out of range" if is_number else "invalid syntax"
        raise OperationError(f"{prefix}strconv.Atoi: parsing {json_text(key)}: {problem}")
    return number


def _checked(number: int, size: int) -> int:
    """Return the index for `number`; a negative `number` counts from the end of `size` items.

    Raises OperationError if there is no item at this index.
    """
    if not -size <= number < size:
        raise OperationError(f"Unable to access invalid index: {number}: invalid index referenced")
    return number + size if number < 0 else number


def opened(part: Any) -> PartialObject | PartialArray:
    """Return `part`, an object or list, as a PartialObject or PartialArray.

    Raises OperationError for any other part.
    """
    match _decoded(part):
        case PartialObject() | PartialArray() as one:
            return one
        case dict() as members:
            return PartialObject(dict(members))
        case list() as items:
            return PartialArray(list(items))
        case _:
            raise OperationError("invalid state detected")


def to_json(part: Any) -> Any:
    """Return a part of a document as a JSON value, with the last value of each repeated member."""
    match part:
        case PartialObject():
            return {key: to_json(value) for key, value in part.members.items()}
        case PartialArray():
            return list(map(to_json, part.items))
        case msgspec.Raw():
            return parse_json(bytes(part))
        case _:
            return part


def parts_equal(left: Any, right: Any) -> bool:
    """Return whether two parts are equal; scalars are equal if their JSON texts are equal.

    Raises ApiError 422 at a null item of a list, because upstream's code panics there.
    """
    # upstream: patch.go:lazyNode.equal, which panics at a null in a list
    left, right = _members_or_items(left), _members_or_items(right)
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        return all(_members_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        return all(map(_items_equal, left, right))
    return not isinstance(right, dict | list) and _json_text(left) == _json_text(right)


def _members_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return parts_equal(one, other)


def _items_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        raise panic_error()
    return parts_equal(one, other)


def _members_or_items(part: Any) -> Any:
    """Return an object or list as a dict or list of parts; return a scalar unchanged."""
    match _decoded(part):
        case PartialObject() as one:
            return one.members
        case PartialArray() as one:
            return one.items
        case other:
            return other


def _decoded(part: Any) -> Any:
    """Return `part`; if it is the JSON text of an object or list, decode the outermost level.

    The values inside stay JSON text, except that null becomes None. If msgspec cannot decode the
    text, all levels are decoded.
    """
    if not isinstance(part, msgspec.Raw):
        return part
    text = bytes(part)
    try:
        if text[:1] == b"{":
            return {key: _null_to_none(value) for key, value in _decode_object(text).items()}
        if text[:1] == b"[":
            return list(map(_null_to_none, _decode_array(text)))
    except (msgspec.DecodeError, RecursionError):
        return parse_json(text)  # accepts lone surrogates and invalid UTF-8, too
    return part


def _null_to_none(part: msgspec.Raw) -> msgspec.Raw | None:
    return None if bytes(part) == b"null" else part


def _json_text(part: Any) -> str:
    if isinstance(part, msgspec.Raw):
        return bytes(part).decode(errors="replace")
    return json_text(part)
