"""Kept: the form in which the library keeps expressions, read as a tree.

These are messages of the wire format of protocol buffers, whose fields have the numbers below.

upstream: cel-spec's proto/cel/expr/{syntax,checked}.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from fairlead.cel.macro import bound_once, exists_one
from fairlead.cel.tree import Call, Entries, Entry, Items, Literal, Loop, Name, Node, Select, Tree

_VARINT, _FIXED = 0, 1
_SIGN: Final = 1 << 63
_ENVELOPED: Final = 2
_PARSED: Final = (2, 3)
_CHECKED: Final = (4, 5)

Field = tuple[int, Any]


def tree_of(kept: bytes) -> Tree:
    """The tree of an expression that the library has written."""
    envelope = dict(_fields(kept))
    is_checked = b"CheckedExpr" in envelope[1]
    root, source = _CHECKED if is_checked else _PARSED
    found = dict(_fields(envelope[_ENVELOPED]))
    return Tree(_node(found[root]), _places(found.get(source, b"")))


def _places(source: bytes) -> dict[int, int]:
    pairs = (dict(_fields(entry)) for number, entry in _fields(source) if number == 4)
    return {pair.get(1, 0): pair.get(2, 0) for pair in pairs}


def _node(raw: bytes) -> Node:
    own, kind, held = 0, 0, b""
    for number, value in _fields(raw):
        if number == 2:
            own = value
        else:
            kind, held = number, value
    match kind:
        case 3:
            return _literal(own, held)
        case 4:
            return Name(own, _text(held))
        case 5:
            return _select(own, dict(_fields(held)))
        case 6:
            return _call(own, held)
        case 7:
            return _items(own, held)
        case 8:
            return _entries(own, held)
        case _:
            return _loop(own, dict(_fields(held)))


def _literal(own: int, held: bytes) -> Literal:
    number, value = next(_fields(held))
    match number:
        case 1:
            return Literal(own, "null_type", None)
        case 2:
            return Literal(own, "bool", bool(value))
        case 3:
            return Literal(own, "int", value - 2 * _SIGN if value & _SIGN else value)
        case 4:
            return Literal(own, "uint", value)
        case 5:
            return Literal(own, "double", struct.unpack("<d", value)[0])
        case 6:
            return Literal(own, "string", value.decode())
        case _:
            return Literal(own, "bytes", bytes(value))


def _text(held: bytes) -> str:
    for _, value in _fields(held):
        return bytes(value).decode()
    return ""


def _select(own: int, held: dict[int, Any]) -> Select:
    return Select(own, _node(held[1]), held[2].decode(), bool(held.get(3)))


def _call(own: int, held: bytes) -> Node:
    function, target, arguments = "", None, []
    for number, value in _fields(held):
        if number == 1:
            target = _node(value)
        elif number == 2:
            function = value.decode()
        else:
            arguments.append(_node(value))
    call = Call(own, function, target, tuple(arguments))
    return exists_one(call) if function == "exists_one" else bound_once(call)


def _items(own: int, held: bytes) -> Items:
    items, optional = [], []
    for number, value in _fields(held):
        if number == 1:
            items.append(_node(value))
        elif isinstance(value, int):
            optional.append(value)
        else:
            optional.extend(_varints(value))
    return Items(own, tuple(items), tuple(optional))


def _entries(own: int, held: bytes) -> Entries:
    name, entries = "", []
    for number, value in _fields(held):
        if number == 1:
            name = value.decode()
        else:
            entries.append(_entry(dict(_fields(value))))
    return Entries(own, name, tuple(entries))


def _entry(held: dict[int, Any]) -> Entry:
    key: Node | str = _node(held[3]) if 3 in held else held[2].decode()
    return Entry(held.get(1, 0), key, _node(held[4]), bool(held.get(5)))


def _loop(own: int, held: dict[int, Any]) -> Loop:
    return Loop(
        own,
        held[1].decode(),
        held[8].decode() if 8 in held else "",
        _node(held[2]),
        held[3].decode(),
        _node(held[4]),
        _node(held[5]),
        _node(held[6]),
        _node(held[7]),
    )


def _fields(raw: bytes) -> Iterator[Field]:
    """The fields of a message by their numbers: numbers, or bytes."""
    at, end = 0, len(raw)
    while at < end:
        tag, at = _varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
        elif kind == _FIXED:
            yield number, raw[at : at + 8]
            at += 8
        else:
            size, at = _varint(raw, at)
            yield number, raw[at : at + size]
            at += size


def _varints(raw: bytes) -> Iterator[int]:
    at = 0
    while at < len(raw):
        value, at = _varint(raw, at)
        yield value


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
