"""Tree: an expression as its parser has read it.

The library gives it in the form in which it is kept: messages of the wire format of protocol
buffers, whose fields have the numbers below. Macros are spelled out already: what goes over lists
and maps is a `Loop`.

upstream: cel-spec's proto/cel/expr/{syntax,checked}.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

_VARINT, _FIXED, _BYTES = 0, 1, 2
_SIGN: Final = 1 << 63
_ENVELOPED: Final = 2
_PARSED: Final = (2, 3)
_CHECKED: Final = (4, 5)
# upstream: cel-go's cel/library.go:optMap
_UNUSED, _TARGET, _RESULT = "#unused", "@target", "@result"
_MADE: Final = 1 << 32  # numbers beyond are of nodes that the parser has not made

Field = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `kind` is the name of its type."""

    id: int
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or whether there is one."""

    id: int
    operand: Node
    field: str
    is_test: bool


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments…)`, or `target.function(arguments…)`."""

    id: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list; those at the places `optional` may be absent."""

    id: int
    items: tuple[Node, ...]
    optional: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a map, or a field of an object."""

    id: int
    key: Node | str
    value: Node
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Entries:
    """A map, or an object where it has the name of a type."""

    id: int
    type_name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A fold over `range`, whose items are called `name`, or `name` and `second`."""

    id: int
    name: str
    second: str
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node = Literal | Name | Select | Call | Items | Entries | Loop


@dataclass(frozen=True, slots=True)
class Tree:
    """What has been read, and at which character each node stands."""

    root: Node
    places: dict[int, int]


def tree_of(kept: bytes) -> Tree:
    """The tree of an expression that the library has written."""
    envelope = dict(_fields(kept))
    is_checked = b"CheckedExpr" in envelope[1]
    root, source = _CHECKED if is_checked else _PARSED
    found = dict(_fields(envelope[_ENVELOPED]))
    return Tree(_node(found[root]), _places(found.get(source, b"")))


def nodes(root: Node) -> Iterator[Node]:
    """A node and all below it."""
    due: list[Node] = [root]
    while due:
        node = due.pop()
        yield node
        due.extend(below(node))


def below(node: Node) -> Iterator[Node]:
    """The nodes that one is made of."""
    match node:
        case Select():
            yield node.operand
        case Call():
            yield from node.arguments
            if node.target is not None:
                yield node.target
        case Items():
            yield from node.items
        case Entries():
            for entry in node.entries:
                if not isinstance(entry.key, str):
                    yield entry.key
                yield entry.value
        case Loop():
            yield from (node.range, node.initial, node.condition, node.step, node.result)
        case _:
            return


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
    return exists_one(call) if function == "exists_one" else _bound_once(call)


def exists_one(node: Call) -> Node:
    """`target.exists_one(key, value, test)`, if it is one; upstream has it under two names."""
    if len(node.arguments) != 3 or node.target is None:
        return node
    key, value, test = node.arguments
    if not isinstance(key, Name) or not isinstance(value, Name):
        return node
    at = -_MADE - 8 * node.id
    result, one = Name(at, _RESULT), Literal(at - 1, "int", 1)
    grown = Call(at - 2, "_+_", None, (Name(at - 3, _RESULT), one))
    step = Call(at - 4, "_?_:_", None, (test, grown, Name(at - 5, _RESULT)))
    zero, yes = Literal(at - 6, "int", 0), Literal(at - 7, "bool", value=True)
    last = Call(key.id, "_==_", None, (result, Literal(value.id, "int", 1)))
    return Loop(node.id, key.name, value.name, node.target, _RESULT, zero, yes, step, last)


def is_made(node: Node) -> bool:
    """Whether the library's parser has not made a node, and knows nothing of it."""
    return isinstance(node, Loop) and node.condition.id < -_MADE


def _bound_once(node: Call) -> Node:
    """`target.optMap(name, value)`, if it is one: upstream works the target out once."""
    if node.function != "_?_:_" or not isinstance(node.arguments[0], Call):
        return node
    test, made, otherwise = node.arguments
    inner = made.arguments[0] if isinstance(made, Call) and len(made.arguments) == 1 else made
    if not isinstance(inner, Loop) or inner.name != _UNUSED or not isinstance(test, Call):
        return node
    target, value = test.target, inner.initial
    if target is None or isinstance(target, Name) or not isinstance(value, Call):
        return node
    named = Name(-target.id, _TARGET)
    inner = replace(inner, initial=replace(value, target=named))
    made = replace(made, arguments=(inner,)) if isinstance(made, Call) else inner
    result = replace(node, arguments=(replace(test, target=named), made, otherwise))
    empty, no = Items(-inner.range.id, (), ()), Literal(-inner.condition.id, "bool", value=False)
    step = Name(-inner.step.id, _TARGET)
    return Loop(-node.id, _UNUSED, "", empty, _TARGET, target, no, step, result)


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
