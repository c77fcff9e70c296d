"""Growth: what functions of the language take, and how large what they make may be.

Those that are not here take what their arguments weigh, and make nothing that weighs more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fairlead.cel.extent import BEYOND, NODE, SCALAR, Extent, Scale, made, union

_STATES_MAX: Final = 400_000  # the matcher's own bound, by the memory that it takes
_REPEATED: Final = re.compile(r"\{(\d+)?,?(\d+)?\}")
_COMPILED: Final = 50
_FOUND: Final = 500  # one match of many
_OURS: Final = 1_000  # a call of a function that is written in Python
_CONVERTED: Final = 10  # what comes to such a function, for each unit of weight
_PRECISION: Final = 500  # the digits that a number may be printed with


@dataclass(frozen=True, slots=True)
class Taken:
    """Units of work, what is made, and the bytes for it."""

    work: int
    made: Extent
    room: int = 0


Growth = Callable[[list[Extent], Scale], Taken]


def _new(work: int, size: int, weight: int, item: Extent | None = None) -> Taken:
    return Taken(work, made(size, weight, item), weight)


def _scalar(work: int) -> Taken:
    return Taken(work, SCALAR)


def _compared(given: list[Extent], _: Scale) -> Taken:
    return _scalar(min(one.weight for one in given))


def _within(given: list[Extent], _: Scale) -> Taken:
    """A list is looked through, a map is not."""
    sought, whole = given
    is_map = whole.examples is not None and all(isinstance(one, dict) for one in whole.examples)
    return _scalar(sought.weight if is_map else sought.weight + whole.weight)


def _added(given: list[Extent], scale: Scale) -> Taken:
    one, other = given
    size, weight = one.size + other.size, one.weight + other.weight
    number = min(one.number + other.number, BEYOND)
    item = union(scale.items(one), scale.items(other))
    return Taken(weight, made(size, weight, item, number), weight)


def _multiplied(given: list[Extent], _: Scale) -> Taken:
    number = min(abs(given[0].number) * abs(given[1].number), BEYOND)
    return Taken(1, made(0, NODE, number=number))


def _size(given: list[Extent], _: Scale) -> Taken:
    return Taken(given[0].size // 10, made(0, NODE, number=given[0].size))


def _searched(given: list[Extent], _: Scale) -> Taken:
    text, sought = given[0].size, given[1].size
    work = text * (1 + sought // 64) + given[0].weight + given[1].weight
    return Taken(work, made(0, NODE, number=text))


def _replaced(given: list[Extent], _: Scale) -> Taken:
    text, new = given[0].size, given[2].size
    old = _shortest(given[1])
    size = text + (text // old if old else text + 1) * new
    return _new(size + text, size, NODE + size)


def _shortest(extent: Extent) -> int:
    """How short a text may be, as far as that is known."""
    if not extent.examples:
        return 0
    return min(len(one) if isinstance(one, str) else 0 for one in extent.examples)


def _split(given: list[Extent], _: Scale) -> Taken:
    size, item = given[0].size + 1, made(given[0].size, given[0].weight)
    return _new(size * NODE, size, size * (NODE + 1), item)


def _joined(given: list[Extent], _: Scale) -> Taken:
    between = given[1].size if len(given) > 1 else 0
    size = given[0].weight + given[0].size * between
    return _new(size, size, NODE + size)


def _printed(given: list[Extent], _: Scale) -> Taken:
    size = given[0].size * _PRECISION + given[1].weight * 9 * max(given[0].size // 2, 1)
    return _new(size, size, NODE + size)


def _quoted(given: list[Extent], _: Scale) -> Taken:
    size = 2 * given[0].size + 2
    return _new(size, size, NODE + size)


def _changed(given: list[Extent], _: Scale) -> Taken:
    """A text of the same length."""
    weight = given[0].weight
    return _new(weight, given[0].size, weight)


def _matched(given: list[Extent], _: Scale) -> Taken:
    """A match tries each state of the pattern at each character, at worst."""
    text, states = given[0], _states(given[1])
    work = text.size * states + states * _COMPILED + text.weight
    item = made(text.size, text.weight)
    size = text.size + 1
    return _new(work + _OURS, size, size * (NODE + 1), item)


def _found(given: list[Extent], scale: Scale) -> Taken:
    """All matches, of which there may be one at each character, each a text of its own."""
    taken = _matched(given, scale)
    return Taken(taken.work + taken.made.size * _FOUND, taken.made, taken.room)


def _states(pattern: Extent) -> int:
    if pattern.examples is None:
        return min(pattern.size * 1_000, _STATES_MAX)
    return max((_states_of(one) for one in pattern.examples), default=0)


def _states_of(pattern: Any) -> int:
    """How many states a pattern has at most: what is repeated counts so often."""
    if not isinstance(pattern, str):
        return 1
    times = 1
    for low, high in _REPEATED.findall(pattern):
        times *= max(int((high or low or "1")[:6]), 1)
    return min(len(pattern) * min(times, 1_000) + 1, _STATES_MAX)


def _paired(given: list[Extent], scale: Scale) -> Taken:
    """Each item of one list is compared with each of another."""
    one, other = given[0], given[-1]
    pairs = max(one.size, 1) * max(other.size, 1)
    each = min(_each(one, scale), _each(other, scale))
    return _new(pairs * each // 4, one.size, one.weight, scale.items(one))


def _each(whole: Extent, scale: Scale) -> int:
    return scale.items(whole).weight + NODE


def _ranged(given: list[Extent], _: Scale) -> Taken:
    count = max(given[0].number, 0)
    item = made(0, NODE, number=count)
    return _new(count * NODE, count, count * NODE, item)


def _same_items(given: list[Extent], scale: Scale) -> Taken:
    """A list of the same items, or of some of them."""
    one = given[0]
    return _new(one.weight * 2, one.size, one.weight, scale.items(one))


def _flat(given: list[Extent], _: Scale) -> Taken:
    weight = given[0].weight
    return _new(weight * 2, weight // NODE, weight)


def _passed(given: list[Extent], _: Scale) -> Taken:
    """A value that is put into an optional one, or taken out."""
    found = given[0]
    for one in given[1:]:
        found = union(found, one)
    return Taken(1, found)


def _ours(given: list[Extent], _: Scale) -> Taken:
    """Functions that are written in Python, whose arguments are made anew for them."""
    weight = sum(one.weight for one in given)
    return _new(_OURS + weight * _CONVERTED, weight, weight)


def _mapped(given: list[Extent], scale: Scale) -> Taken:
    """A map of pairs."""
    pairs = given[0]
    return _converted(pairs, pairs.size, scale.items(scale.items(pairs)))


def _merged(given: list[Extent], scale: Scale) -> Taken:
    """One map of several, each of which may have more than one entry."""
    maps = given[0]
    return _converted(maps, maps.weight // NODE, scale.items(scale.items(maps)))


def _converted(given: Extent, size: int, item: Extent) -> Taken:
    weight = given.weight
    return Taken(_OURS + weight * _CONVERTED, made(size, weight, item), weight * 2)


def _first(given: list[Extent], scale: Scale) -> Taken:
    return Taken(1, scale.items(given[0]))


GROWTH: Final[dict[str, Growth]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    **dict.fromkeys(("_&&_", "_||_", "!_", "-_", "_-_", "_/_", "_%_"), lambda *_: _scalar(1)),
    **dict.fromkeys(("@not_strictly_false", "type", "hasValue"), lambda *_: _scalar(1)),
    "@in": _within,
    "_+_": _added,
    "_*_": _multiplied,
    "size": _size,
    **dict.fromkeys(("contains", "startsWith", "endsWith", "indexOf", "lastIndexOf"), _searched),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "format": _printed,
    "strings.quote": _quoted,
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "substring", "charAt"), _changed),
    **dict.fromkeys(("matches", "find"), _matched),
    "findAll": _found,
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _paired),
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys"), _paired),
    "lists.range": _ranged,
    **dict.fromkeys(("slice", "reverse", "optional.unwrap", "unwrapOpt"), _same_items),
    "flatten": _flat,
    **dict.fromkeys(("first", "last"), _first),
    **dict.fromkeys(("optional.of", "optional.ofNonZeroValue", "value", "orValue"), _passed),
    **dict.fromkeys(("or", "dyn"), _passed),
    "@map": _mapped,
    "@merge": _merged,
}


def growth(function: str, *, is_ours: bool) -> Growth:
    """What calls of a function take; ours are those that are written in Python."""
    return GROWTH.get(function) or (_ours if is_ours else _plain)


def _plain(given: list[Extent], _: Scale) -> Taken:
    """Functions that look at what they are given, and make nothing larger."""
    weight = min(sum(one.weight for one in given), BEYOND)
    return Taken(weight, made(weight, weight))
