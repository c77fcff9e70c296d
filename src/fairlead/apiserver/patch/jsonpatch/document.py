"""Documents that are patched: opened where a path leads, shared with the original elsewhere.

A part is a JSON value, which nobody changes, the text of one (`msgspec.Raw`), or an `Object` or
`Array` of parts, which is what a value or text becomes when it is opened.

upstream: gopkg.in/evanphx/json-patch.v4/patch.go:lazyNode
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from fairlead.api.integer import parse_int64
from fairlead.apiserver.gotext.value import go_json
from fairlead.apiserver.patch.strategicpatch.directive import crashed
from fairlead.apiserver.schema.json_text import parse_json

_END: Final = "-"
_PLACE: Final = re.compile(r"[+-]?[0-9]+")
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class CannotError(Exception):
    """An operation that cannot be done."""


class Object:
    """An object whose members may be exchanged."""

    __slots__ = ("members",)

    def __init__(self, members: dict[str, Any]) -> None:
        """`members` are its own from now on."""
        self.members = members

    def get(self, key: str) -> Any:
        """A member, None if it is not there."""
        return self.members.get(key)

    def set(self, key: str, value: Any) -> None:
        """Have another member of that name."""
        self.members[key] = value

    def add(self, key: str, value: Any) -> None:
        """Likewise."""
        self.members[key] = value

    def remove(self, key: str) -> None:
        """Have no such member. Raises CannotError if there is none."""
        if key not in self.members:
            raise CannotError
        del self.members[key]

    def opened(self, key: str) -> Object | Array:
        """A member, opened. Raises CannotError if nothing is in it."""
        inner = self.members[key] = opened(self.members.get(key))
        return inner


class Array:
    """A list whose items may be exchanged."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        """`items` are its own from now on."""
        self.items = items

    def get(self, key: str) -> Any:
        """An item. Raises CannotError, as do all others here."""
        return self.items[self._place(key, len(self.items))]

    def set(self, key: str, value: Any) -> None:
        """Have another item in the place of one."""
        self.items[self._place(key, len(self.items))] = value

    def add(self, key: str, value: Any) -> None:
        """Have one more item in front of that place, or at the end."""
        size = len(self.items) + 1
        self.items.insert(size - 1 if key == _END else self._place(key, size), value)

    def remove(self, key: str) -> None:
        """Have one item less."""
        del self.items[self._place(key, len(self.items))]

    def opened(self, key: str) -> Object | Array:
        """An item, opened."""
        place = self._place(key, len(self.items))
        inner = self.items[place] = opened(self.items[place])
        return inner

    @staticmethod
    def _place(key: str, size: int) -> int:
        number = parse_int64(key) if _PLACE.fullmatch(key) else None
        if number is None or not -size <= number < size:
            raise CannotError
        return number + size if number < 0 else number


def opened(part: Any) -> Object | Array:
    """`part` so that its members can be exchanged. Raises CannotError if it has none."""
    match _looked_into(part):
        case Object() | Array() as found:
            return found
        case dict() as members:
            return Object(dict(members))
        case list() as items:
            return Array(list(items))
        case _:
            raise CannotError


def closed(part: Any) -> Any:
    """The JSON value of a part; texts are read, with what is in them twice."""
    match part:
        case Object():
            return {key: closed(value) for key, value in part.members.items()}
        case Array():
            return list(map(closed, part.items))
        case msgspec.Raw():
            return parse_json(bytes(part))
        case _:
            return part


def is_same(found: Any, wanted: Any) -> bool:
    """Whether two parts are the same; single values are if their texts are."""
    # upstream: patch.go:lazyNode.equal, which breaks down at a null in a list
    one, other = _content(found), _content(wanted)
    if isinstance(one, dict):
        if not isinstance(other, dict) or one.keys() != other.keys():
            return False
        return all(_is_same_member(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        if not isinstance(other, list) or len(one) != len(other):
            return False
        return all(map(_is_same_item, one, other))
    return not isinstance(other, dict | list) and _spelling(found) == _spelling(wanted)


def _is_same_member(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return is_same(one, other)


def _is_same_item(one: Any, other: Any) -> bool:
    if one is None or other is None:
        raise crashed()
    return is_same(one, other)


def _content(part: Any) -> Any:
    """The members or items of a part."""
    match _looked_into(part):
        case Object() as found:
            return found.members
        case Array() as found:
            return found.items
        case other:
            return other


def _looked_into(part: Any) -> Any:
    """`part`, with a text of an object or a list as one of texts."""
    if not isinstance(part, msgspec.Raw):
        return part
    text = bytes(part)
    try:
        if text[:1] == b"{":
            return {key: _or_none(value) for key, value in _members(text).items()}
        if text[:1] == b"[":
            return list(map(_or_none, _items(text)))
    except (msgspec.DecodeError, RecursionError):
        return parse_json(text)  # it has halves of characters, or bytes that are none
    return part


def _or_none(part: msgspec.Raw) -> msgspec.Raw | None:
    return None if bytes(part) == b"null" else part


def _spelling(part: Any) -> str:
    if isinstance(part, msgspec.Raw):
        return bytes(part).decode(errors="replace")
    return go_json(part)
