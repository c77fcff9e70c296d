"""Writing: a tree in the form in which the library keeps expressions that it has not checked.

upstream: cel-spec's proto/cel/expr/syntax.proto; `kept` says which numbers its fields have
"""

from __future__ import annotations

import struct
from typing import Final

from fairlead.cel.tree import Call, Entries, Entry, Items, Literal, Loop, Name, Node, Select

_SORT: Final = b"type.googleapis.com/cel.expr.ParsedExpr"
_FIXED: Final = 1
_LITERALS: Final = {"null_type": 1, "bool": 2, "int": 3, "uint": 4, "double": 5, "string": 6}


def written(root: Node) -> bytes:
    """What the library makes an expression of."""
    return _part(1, _SORT) + _part(2, _part(2, _Writer().node(root)))


class _Writer:
    """Gives each node a number of its own."""

    def __init__(self) -> None:
        """None has been given."""
        self._last = 0

    def node(self, node: Node) -> bytes:
        """One node with those below it."""
        kind, held = self._held(node)
        return self._number() + _part(kind, held)

    def _number(self) -> bytes:
        self._last += 1
        return _whole(2, self._last)

    def _held(self, node: Node) -> tuple[int, bytes]:
        match node:
            case Literal():
                return 3, _literal(node)
            case Name():
                return 4, _text(1, node.name)
            case Select():
                operand = _part(1, self.node(node.operand)) + _text(2, node.field)
                return 5, operand + (_whole(3, 1) if node.is_test else b"")
            case Call():
                return 6, self._call(node)
            case Items():
                items = b"".join(_part(1, self.node(one)) for one in node.items)
                return 7, items + b"".join(_whole(2, at) for at in node.optional)
            case Entries():
                return 8, b"".join(_part(2, self._entry(one)) for one in node.entries)
            case Loop():
                return 9, self._loop(node)

    def _call(self, node: Call) -> bytes:
        target = b"" if node.target is None else _part(1, self.node(node.target))
        given = b"".join(_part(3, self.node(one)) for one in node.arguments)
        return target + _text(2, node.function) + given

    def _entry(self, entry: Entry) -> bytes:
        if isinstance(entry.key, str):
            key = _part(3, self.node(Literal(0, "string", entry.key)))
        else:
            key = _part(3, self.node(entry.key))
        value = _part(4, self.node(entry.value))
        return self._number_of_entry() + key + value + (_whole(5, 1) if entry.is_optional else b"")

    def _number_of_entry(self) -> bytes:
        self._last += 1
        return _whole(1, self._last)

    def _loop(self, node: Loop) -> bytes:
        parts = (node.initial, node.condition, node.step, node.result)
        return b"".join(
            (
                _text(1, node.name),
                _text(8, node.second) if node.second else b"",
                _part(2, self.node(node.range)),
                _text(3, node.accumulator),
                *(_part(number, self.node(one)) for number, one in enumerate(parts, start=4)),
            )
        )


def _literal(node: Literal) -> bytes:
    match node.kind:
        case "string":
            return _text(6, node.value)
        case "bytes":
            return _part(7, node.value)
        case "double":
            return _varint(5 << 3 | _FIXED) + struct.pack("<d", node.value)
        case "null_type":
            return _whole(1, 0)
        case _:
            return _whole(_LITERALS[node.kind], int(node.value))


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, held: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(held)) + held


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    written_bytes = bytearray()
    while value > 0x7F:
        written_bytes.append(value & 0x7F | 0x80)
        value >>= 7
    written_bytes.append(value)
    return bytes(written_bytes)
