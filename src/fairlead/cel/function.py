"""A function of the language: its argument types, its cost, and its implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.cost.runtime_cost import PATTERN_COST, TEXT_COST, reading, size_of
from fairlead.cel.value import DefaultMap, Uint

ANY: Final = object
NUMBERS: Final = (int, Uint, float)

Cost = Callable[..., int]
Types = tuple[type, ...]


class Function(Struct, frozen=True):
    """One overload of a function: its name, argument types, implementation and cost.

    `implementation` raises ValueError if the result of the call is a CEL error. If `is_metered` is
    set, the first argument of `implementation` is the cost tracker. `cost` takes the arguments
    without the tracker and returns the cost in units. If `cost` is None, a call costs one unit.
    """

    name: str
    taken: Types
    implementation: Callable[..., Any]
    cost: Cost | None = None
    is_member: bool = False
    is_metered: bool = False


def free(
    name: str,
    taken: Types,
    implementation: Callable[..., Any],
    cost: Cost | None = None,
    *,
    is_metered: bool = False,
) -> Function:
    """Return an overload that is called as a function: `name(arguments…)`.

    `taken` contains the types of the arguments. `Function` describes the other parameters.
    """
    return Function(name, taken, implementation, cost, is_metered=is_metered)


def member(
    name: str,
    taken: Types,
    implementation: Callable[..., Any],
    cost: Cost | None = None,
    *,
    is_metered: bool = False,
) -> Function:
    """Return an overload that is called as a method, `receiver.name(arguments…)`.

    `taken` contains the type of the receiver, then the types of the arguments. `Function` describes
    the other parameters.
    """
    return Function(name, taken, implementation, cost, is_member=True, is_metered=is_metered)


class Overloads:
    """The overloads of one function name, found by the types of their arguments."""

    __slots__ = ("_found", "_functions")

    def __init__(self, functions: Iterable[Function]) -> None:
        """Index `functions`, which have different argument types."""
        self._functions = tuple(functions)
        self._found: dict[Types, Function | None] = {}

    def of(self, types: Types) -> Function | None:
        """Return the overload for arguments of the given types; None if there is none."""
        try:
            return self._found[types]
        except KeyError:
            found = next((one for one in self._functions if _takes(one, types)), None)
            self._found[types] = found
            return found


def _takes(function: Function, types: Types) -> bool:
    taken = function.taken
    return len(taken) == len(types) and all(map(_is_taken, taken, types))


def _is_taken(wanted: type, given: type) -> bool:
    return wanted is ANY or wanted is given or (wanted is dict and given is DefaultMap)


def is_readable(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Return a function that returns whether `read` accepts a text.

    `read` raises ValueError for a text that it does not accept.
    """

    def answer(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return answer


# Costs of calls, as functions of their arguments. upstream: interpreter/runtimecost.go:costCall,
# apiserver/pkg/cel/library/cost.go:CallCost


def scan(value: Any, *_: Any) -> int:
    """Return the cost of reading the first argument."""
    return reading(value)


def scan_twice(value: Any, *_: Any) -> int:
    """Return the cost of reading the first argument and writing a result of the same size."""
    return reading(value, 2 * TEXT_COST)


def scan_second(_: Any, value: Any, *__: Any) -> int:
    """Return the cost of reading the second argument."""
    return reading(value)


def search(text: str, pattern: str, *_: Any) -> int:
    """Return the cost of matching `pattern` against `text`.

    The cost is proportional to the number of states of the regular expression. Upstream assumes
    one state for every four characters of the pattern.
    """
    return ceil((1 + len(text)) * TEXT_COST) * reading(pattern, PATTERN_COST)


def traverse(value: Any, *_: Any) -> int:
    """Return the cost of reading a value with all its items.

    upstream: apiserver/pkg/cel/library/cost.go:traversalCost
    """
    if isinstance(value, str | bytes):
        return reading(value)
    if isinstance(value, list):
        return sum(map(traverse, value))
    if isinstance(value, dict):
        return sum(traverse(key) + traverse(item) for key, item in value.items())
    return 1


def list_made(size: int, factor: float = 1) -> int:
    """Return the cost of building a list: `size` steps of `factor` units each, plus 11 units.

    upstream: cel-go's ext/lists.go:trackAllocatingListCall
    """
    return ceil(size * factor) + 11


def list_copied(items: list[Any], *_: Any) -> int:
    """Return the cost of building a list of the same size as `items`."""
    return list_made(len(items))


def list_compared(items: list[Any], *_: Any) -> int:
    """Return the cost of comparing each item of a list with every item of the same list."""
    is_text = bool(items) and isinstance(items[0], str | bytes)
    return list_made(len(items) ** 2, 2 + TEXT_COST if is_text else 2)


def pairs(left: Any, right: Any, factor: int = 1) -> int:
    """Return the cost of comparing each item of one list with each item of the other.

    Each comparison costs `factor` units, and the call itself costs one unit.

    upstream: cel-go's ext/sets.go
    """
    return size_of(left) * size_of(right) * factor + 1
