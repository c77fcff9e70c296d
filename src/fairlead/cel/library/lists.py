"""Functions on lists, including functions that treat lists as sets.

upstream: cel-go's ext/{lists,sets}.go, apiserver/pkg/cel/library/lists.go
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from fairlead.cel.cost.runtime_cost import CostTracker
from fairlead.cel.function import (
    ANY,
    NUMBERS,
    Function,
    free,
    list_compared,
    list_copied,
    list_made,
    member,
    pairs,
    traverse,
)
from fairlead.cel.interpreter.operator import sum_of
from fairlead.cel.value import (
    NONE,
    Duration,
    OptionalValue,
    Timestamp,
    is_equal,
    is_ordered,
)

_SORTABLE: Final = frozenset({*NUMBERS, bool, str, bytes, Timestamp, Duration})
_COMPARE_STEPS: Final = 10
_HASHED: Final = frozenset({str, bytes, bool, Timestamp, Duration})


def _is_sorted(items: list[Any]) -> bool:
    return all(_is_least(one, following) for one, following in pairwise(items))


def _is_least(one: Any, other: Any) -> bool:
    if not is_ordered(one, other):
        raise ValueError("no such overload")
    return bool(one <= other)


def _extreme(name: str, choose: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        found = items[0]
        for one in items[1:]:
            if not is_ordered(one, found):
                raise ValueError("no such overload")
            if choose(one, found):
                found = one
        return found

    return extreme


def _sum(items: list[Any]) -> Any:
    if items and type(items[0]) not in (*NUMBERS, Duration):
        raise ValueError("no such overload")
    return reduce(sum_of, items) if items else 0


def _first_place(items: list[Any], sought: Any) -> int:
    return next((at for at, item in enumerate(items) if is_equal(item, sought)), -1)


def _last_place(items: list[Any], sought: Any) -> int:
    at = _first_place(items[::-1], sought)
    return len(items) - 1 - at if at >= 0 else -1


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise ValueError(f"{what}, negative indexes not supported")
    if start > end:
        raise ValueError(f"{what}, start index must be less than or equal to end index")
    if end > len(items):
        raise ValueError(f"{what}, list is length {len(items)}")
    return items[start:end]


def _slice_cost(items: list[Any], start: int, end: int) -> int:
    return list_made(max(min(end, len(items)) - start, 0))


def _flat(tracker: CostTracker, items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    tracker.add_work(len(items))
    if not depth:
        return items
    found: list[Any] = []
    for one in items:
        if isinstance(one, list):
            found.extend(_flat(tracker, one, depth - 1))
        else:
            found.append(one)
    return found


def _flat_cost(items: list[Any], depth: int = 1) -> int:
    return list_made(len(items), max(depth, 0))


def _distinct(tracker: CostTracker, items: list[Any]) -> list[Any]:
    """Return the items without repetitions."""
    kinds = {type(one) for one in items}
    if len(kinds) == 1 and kinds <= _HASHED:
        return list(dict.fromkeys(items))
    found: list[Any] = []
    for one in items:
        tracker.add_work(_COMPARE_STEPS * (len(found) + 1))
        tracker.add_work_within(one, _COMPARE_STEPS * (len(found) + 1))
        if not any(is_equal(one, before) for before in found):
            found.append(one)
    return found


def _sorted(items: list[Any]) -> list[Any]:
    return _sorted_by(items, items)


def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Return `items` in ascending order of their keys; `keys[i]` is the key of `items[i]`."""
    if len(items) != len(keys):
        expected = "expected a list of the same size as the associated keys list"
        sizes = f"{len(items)} and {len(keys)} elements respectively"
        raise ValueError(f"@sortByAssociatedKeys() {expected}, but got {sizes}")
    kinds = {type(key) for key in keys}
    if len(kinds) > 1:
        raise ValueError("list elements must have the same type")
    if not kinds <= _SORTABLE:
        raise ValueError("list elements must be comparable")
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return [items[at] for at in order]


def _sorted_by_cost(_: list[Any], keys: list[Any]) -> int:
    return list_compared(keys)


def _range(size: int) -> list[int]:
    if size < 0:
        raise ValueError("lists.range: size must be non-negative")
    return list(range(size))


def _contains(tracker: CostTracker, whole: list[Any], part: list[Any]) -> bool:
    """Return whether each item of `part` is in `whole`."""
    _add_work_of_pairs(tracker, whole, part)
    return all(any(is_equal(one, other) for other in whole) for one in part)


def _equivalent(tracker: CostTracker, one: list[Any], other: list[Any]) -> bool:
    return _contains(tracker, one, other) and _contains(tracker, other, one)


def _intersects(tracker: CostTracker, one: list[Any], other: list[Any]) -> bool:
    _add_work_of_pairs(tracker, one, other)
    return any(any(is_equal(first, second) for second in other) for first in one)


def _add_work_of_pairs(tracker: CostTracker, one: list[Any], other: list[Any]) -> None:
    tracker.add_work_within(one, _COMPARE_STEPS * max(len(other), 1))


def _equivalent_cost(one: list[Any], other: list[Any]) -> int:
    return pairs(one, other, 2)


FUNCTIONS: Final[tuple[Function, ...]] = (
    member("isSorted", (list,), _is_sorted, traverse),
    member("sum", (list,), _sum, traverse),
    member("min", (list,), _extreme("min", lambda one, best: one < best), traverse),
    member("max", (list,), _extreme("max", lambda one, best: one > best), traverse),
    member("indexOf", (list, ANY), _first_place, traverse),
    member("lastIndexOf", (list, ANY), _last_place, traverse),
    member("slice", (list, int, int), _slice, _slice_cost),
    member("flatten", (list,), _flat, _flat_cost, is_metered=True),
    member("flatten", (list, int), _flat, _flat_cost, is_metered=True),
    member("distinct", (list,), _distinct, list_compared, is_metered=True),
    member("reverse", (list,), lambda items: items[::-1], list_copied),
    member("sort", (list,), _sorted, list_compared),
    member("@sortByAssociatedKeys", (list, list), _sorted_by, _sorted_by_cost),
    member("first", (list,), lambda items: OptionalValue(items[0]) if items else NONE),
    member("last", (list,), lambda items: OptionalValue(items[-1]) if items else NONE),
    free("lists.range", (int,), _range, lambda size: list_made(max(size, 0))),
    free("sets.contains", (list, list), _contains, pairs, is_metered=True),
    free("sets.equivalent", (list, list), _equivalent, _equivalent_cost, is_metered=True),
    free("sets.intersects", (list, list), _intersects, pairs, is_metered=True),
)
