"""The syntax tree of a parsed expression: node types, and functions that walk the nodes.

Macros are already expanded: a loop over a list or a map is a `Comprehension`.

upstream: cel-spec's proto/cel/expr/syntax.proto
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class Literal(Struct, frozen=True):
    """A constant; `type_name` is the name of its type."""

    id: int
    type_name: str
    value: Any


class Identifier(Struct, frozen=True):
    """A variable."""

    id: int
    name: str


class Select(Struct, frozen=True):
    """The field `operand.field`; if `is_test` is set, a test whether this field exists."""

    id: int
    operand: Node
    field: str
    is_test: bool


class Call(Struct, frozen=True):
    """A call: `function(arguments…)`, or `target.function(arguments…)`."""

    id: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class ListLiteral(Struct, frozen=True):
    """A list literal; `optional` contains the indexes of optional items, such as `x` in `[?x]`."""

    id: int
    items: tuple[Node, ...]
    optional: tuple[int, ...]


class MapEntry(Struct, frozen=True):
    """An entry of a map, or a field of an object."""

    id: int
    key: Node | str
    value: Node
    is_optional: bool


class MapLiteral(Struct, frozen=True):
    """A map literal, or an object if it has a type name."""

    id: int
    type_name: str
    entries: tuple[MapEntry, ...]


class Comprehension(Struct, frozen=True):
    """A loop over `range`; its variables are `name`, or `name` and `second`."""

    id: int
    name: str
    second: str
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node

    @property
    def is_bind(self) -> bool:
        """Whether the macro `cel.bind` made this loop; such a loop has no rounds."""
        is_empty = isinstance(self.range, ListLiteral) and not self.range.items
        return is_empty and isinstance(self.condition, Literal) and self.condition.value is False


Node = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | Comprehension


class Tree(Struct, frozen=True):
    """A parsed expression; `places` maps each node's id to its position, counted in characters."""

    root: Node
    places: dict[int, int]


def nodes(root: Node) -> Iterator[Node]:
    """Yield `root` and all nodes below it."""
    due: list[Node] = [root]
    while due:
        node = due.pop()
        yield node
        due.extend(below(node))


def below(node: Node) -> Iterator[Node]:
    """Yield the direct children of `node`."""
    match node:
        case Select():
            yield node.operand
        case Call():
            yield from node.arguments
            if node.target is not None:
                yield node.target
        case ListLiteral():
            yield from node.items
        case MapLiteral():
            for entry in node.entries:
                if not isinstance(entry.key, str):
                    yield entry.key
                yield entry.value
        case Comprehension():
            yield from (node.range, node.initial, node.condition, node.step, node.result)
        case _:
            return


def path_of(node: Node) -> str:
    """Return the path `a.b.c` of a chain of fields; "" for any other node."""
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Select) and not node.is_test:
        inner = path_of(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""
