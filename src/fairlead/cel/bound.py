"""Bound: what asking an expression about given values may take, before it is asked.

The library cannot be stopped while it works, and knows no bound but on rounds of loops. So the
expression is first gone through with the sizes of the values in place of the values: how large what
it makes may become, and how long it may take. What may take too much is not asked at all. That is
more than it would take mostly, so that the bound is ten times of what upstream lets it take.

A unit is some nanoseconds, as long as it takes to look at a few characters.

upstream: none; apiserver/pkg/apis/cel/config.go:PerCallLimit bounds what is really taken
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fairlead.cel.extent import NEVER, NODE, SCALAR, Extent, Scale, made, union
from fairlead.cel.growth import growth
from fairlead.cel.library import OURS
from fairlead.cel.tree import Call, Entries, Items, Literal, Loop, Name, Node, Select

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK_MAX: Final = 100_000_000
ROOM_MAX: Final = 64 << 20  # bytes
ROUNDS_MAX: Final = 10_000  # the library's own bound
_STEP: Final = 20
LOOK: Final = 120  # at a value, here
_ITEM_BYTES: Final = 16
_OPTIONAL: Final = ("_?._", "_[?_]")


class TooCostlyError(Exception):
    """An expression may take more than it may."""


class Spent(NamedTuple):
    """What a question may take: units of work, and bytes for what is made."""

    work: int
    room: int


def spend(root: Node, known: Mapping[str, Any], scale: Scale | None = None) -> Spent:
    """What asking `root` about these values may take. Raises TooCostlyError.

    `scale` may have weighed these values before.
    """
    scale = scale or Scale()
    going = _Going(known, scale, looked_before=scale.looked)
    going.extent(root)
    return Spent(going.work + going.looking, going.room)


@dataclass(slots=True)
class _Going:
    known: Mapping[str, Any]
    scale: Scale
    looked_before: int
    scope: dict[str, Extent] = field(default_factory=dict)
    work: int = 0
    room: int = 0
    rounds: int = 1

    @property
    def looking(self) -> int:
        """What it has taken so far to look at the values here."""
        return (self.scale.looked - self.looked_before) * LOOK

    def extent(self, node: Node) -> Extent:
        """How large the value of `node` may be; what it takes is added up."""
        self._take(_STEP)
        match node:
            case Literal():
                return self.scale.of((node.value,))
            case Name():
                return self._name(node)
            case Select():
                whole = self.extent(node.operand)
                return SCALAR if node.is_test else self.scale.field(whole, node.field)
            case Call():
                return self._call(node)
            case Items():
                return self._items(node)
            case Entries():
                return self._entries(node)
            case Loop():
                return self._loop(node)

    def _take(self, work: int, room: int = 0) -> None:
        self.work += work * self.rounds
        self.room += room * self.rounds
        if self.work + self.looking > WORK_MAX or self.room > ROOM_MAX:
            raise TooCostlyError

    def _name(self, node: Name) -> Extent:
        found = self.scope.get(node.name)
        if found is not None:
            return found
        name = node.name.removeprefix(".")
        return self.scale.of((self.known[name],)) if name in self.known else SCALAR

    def _call(self, node: Call) -> Extent:
        if node.function == "_?_:_":
            test, yes, no = node.arguments
            self.extent(test)
            return union(self.extent(yes), self.extent(no))
        before = [self.extent(node.target)] if node.target is not None else []
        given = [*before, *map(self.extent, node.arguments)]
        if node.function in _OPTIONAL or node.function == "_[_]":
            return self._part(node, given[0])
        taken = growth(node.function, is_ours=node.function in OURS)(given, self.scale)
        self._take(taken.work, taken.room)
        return taken.made

    def _part(self, node: Call, whole: Extent) -> Extent:
        """What an index or a name gives of `whole`."""
        key = node.arguments[1]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return self.scale.field(whole, key.value)
        return self.scale.items(whole)

    def _items(self, node: Items) -> Extent:
        inner = [self.extent(one) for one in node.items]
        return self._whole(inner, inner)

    def _entries(self, node: Entries) -> Extent:
        keys = [self.extent(one.key) for one in node.entries if not isinstance(one.key, str)]
        values = [self.extent(one.value) for one in node.entries]
        return self._whole(values, [*keys, *values])

    def _whole(self, items: list[Extent], parts: list[Extent]) -> Extent:
        self._take(_STEP * len(parts), _ITEM_BYTES * len(parts))
        item = NEVER
        for one in items:
            item = union(item, one)
        return made(len(items), NODE + sum(one.weight for one in parts), item)

    def _loop(self, node: Loop) -> Extent:
        ranged, initial = self.extent(node.range), self.extent(node.initial)
        if isinstance(node.range, Items) and not node.range.items:  # a name for a value
            with self._named({node.accumulator: initial}):
                return self.extent(node.result)
        rounds = min(ranged.size, ROUNDS_MAX)
        names = {node.name: self.scale.keys(ranged)}
        if node.second:
            names = {node.name: self._places(ranged), node.second: self.scale.items(ranged)}
        if not rounds:
            return initial
        with self._named({**names, node.accumulator: NEVER}), self._repeated(rounds):
            self.extent(node.condition)
            grown = self.extent(node.step)
            if isinstance(node.initial, Items | Entries):
                # Each round makes the whole anew.
                self._take(grown.size * rounds * 2, grown.size * rounds * _ITEM_BYTES // 2)
        if not isinstance(node.initial, Items | Entries):
            return SCALAR
        return made(grown.size * rounds, NODE + grown.weight * rounds, grown.item)

    def _places(self, ranged: Extent) -> Extent:
        return union(made(0, NODE, number=ranged.size), self.scale.keys(ranged))

    @contextmanager
    def _named(self, names: dict[str, Extent]) -> Iterator[None]:
        before = self.scope
        self.scope = {**before, **names}
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def _repeated(self, rounds: int) -> Iterator[None]:
        before = self.rounds
        self.rounds = min(before * rounds, ROUNDS_MAX)
        try:
            yield
        finally:
            self.rounds = before
