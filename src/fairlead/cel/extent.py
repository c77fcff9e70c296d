"""Extent: how large a value may be that an expression works with.

It stands for any of several values: for some that are at hand, or for made ones of which just the
bounds are known. A value weighs one for each character and `NODE` for each part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

NODE: Final = 10
EXAMPLES_MAX: Final = 200_000
BEYOND: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Extent:
    """At most `size` characters, items or entries, of at most this weight altogether.

    `number` is how much it is at most, if it is a number. `examples` are all the values that it may
    be, where they are at hand, else None; `item` is what is in it, where that is known.
    """

    size: int
    weight: int
    number: int = BEYOND
    examples: tuple[Any, ...] | None = None
    item: Extent | None = None


SCALAR: Final = Extent(0, NODE)
NEVER: Final = Extent(0, 0, 0, ())


def made(size: int, weight: int, item: Extent | None = None, number: int = BEYOND) -> Extent:
    """Something that is worked out."""
    return Extent(min(size, BEYOND), min(weight, BEYOND), number, None, item)


def union(one: Extent, other: Extent) -> Extent:
    """Either of them."""
    if one is NEVER or other is NEVER:
        return other if one is NEVER else one
    if one is other:
        return one
    examples: tuple[Any, ...] | None = None
    if one.examples is not None and other.examples is not None:
        both = len(one.examples) + len(other.examples)
        examples = one.examples + other.examples if both <= EXAMPLES_MAX else None
    item = union(one.item, other.item) if one.item and other.item else None
    return Extent(
        max(one.size, other.size),
        max(one.weight, other.weight),
        max(one.number, other.number),
        examples,
        item,
    )


class Scale:
    """Weighs values; of each it remembers the weight, while they live.

    It counts at how many it has `looked`; `unnamed` are the fields that were asked of values which
    have none.
    """

    def __init__(self) -> None:
        """Nothing has been weighed."""
        self.looked = 0
        self.unnamed: list[str] = []
        self._weights: dict[int, int] = {}

    def of(self, examples: Iterable[Any]) -> Extent:
        """The extent of one of these values, whichever it is."""
        held = tuple(examples)
        if not held:
            return NEVER
        self.looked += len(held)
        size = max(map(_size, held))
        number = max(map(_number, held))
        weight = max(map(self.weight, held))
        kept = held if len(held) <= EXAMPLES_MAX else None
        return Extent(size, weight, number, kept)

    def weight(self, value: Any) -> int:
        """What a value weighs with all that is in it."""
        if isinstance(value, str | bytes):
            return NODE + len(value)
        if not isinstance(value, dict | list):
            return NODE
        known = self._weights.get(id(value))
        if known is None:
            self.looked += len(value)
            known = self._weights[id(value)] = NODE + self._inside(value)
        return known

    def _inside(self, value: Any) -> int:
        if isinstance(value, list):
            return sum(map(self.weight, value))
        return sum(NODE + len(str(key)) + self.weight(item) for key, item in value.items())

    def field(self, whole: Extent, name: str) -> Extent:
        """A field of `whole`."""
        if whole.examples is None:
            return self._part(whole)
        if not all(isinstance(one, dict) for one in whole.examples):
            self.unnamed.append(name)
        return self.of(one[name] for one in whole.examples if isinstance(one, dict) and name in one)

    def items(self, whole: Extent) -> Extent:
        """The items of a list, or the values of a map."""
        if whole.examples is None:
            return self._part(whole)
        return self.of(item for one in whole.examples for item in _items(one))

    def keys(self, whole: Extent) -> Extent:
        """What a loop over `whole` goes over: the items of a list, or the keys of a map."""
        if whole.examples is None:
            return self._part(whole)
        return self.of(
            item
            for one in whole.examples
            for item in (one if isinstance(one, dict) else _items(one))
        )

    def _part(self, whole: Extent) -> Extent:
        return whole.item or made(whole.weight, whole.weight)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 0


def _number(value: Any) -> int:
    if isinstance(value, int | float):
        return int(value) if abs(value) < BEYOND else BEYOND
    return 0
