"""The order of a list that was merged: as the patch has it, and the rest as it was.

upstream: apimachinery/pkg/util/strategicpatch/patch.go:normalizeElementOrder, mergeSortedSlice,
validatePatchWithSetOrderList
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.apiserver.gotext.value import go_kind, go_text
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DIRECTIVE,
    SET_ORDER,
    bad_argument,
    crashed,
    no_key,
    refused,
)

Places = Mapping[str | bytes, int]


def ordered(
    mine: list[Any],
    rest: list[Any],
    wanted: list[Any],
    before: list[Any],
    key: str,
    *,
    are_objects: bool,
) -> list[Any]:
    """What `wanted` has in its order, between the `rest`, which was there.

    An item of `wanted` stands in front of what was there unless both had an order `before`.
    `key` tells objects apart, "" means that items are single values. Raises ApiError 500.
    """
    by = key if are_objects else ""
    mine = _sorted(mine, wanted, by, are_objects=are_objects)
    rest = _sorted(rest, before, by, are_objects=are_objects)
    return _mixed(rest, mine, _places(before, by), by)


def parted(merged: list[Any], wanted: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The items that `wanted` has, and all others. Raises ApiError 500."""
    if not key:
        if any(isinstance(item, dict | list) for item in (*merged, *wanted)):
            raise crashed()
    else:
        require_keys(merged, key)
        for at, item in enumerate(wanted):
            if merged and not isinstance(item, dict):
                raise refused(f"value for key {at} is not a map")
    known = _places(wanted, key)
    mine = [item for item in merged if _name(item, key) in known]
    return mine, [item for item in merged if _name(item, key) not in known]


def _sorted(items: list[Any], order: list[Any], key: str, *, are_objects: bool) -> list[Any]:
    """`items` as they stand in `order`, those that go at the end."""
    # upstream: patch.go:normalizeSliceOrder
    gone = []
    if are_objects:
        require_keys(items, key)
        require_keys(order, key)
        gone = [item for item in items if is_deleted(item)]
        items = [item for item in items if not is_deleted(item)]
    places = _places(order, key)
    found = [places.get(_name(item, key), -1) for item in items]
    if -1 not in found:
        known = sorted(range(len(items)), key=found.__getitem__)
        return [*(items[at] for at in known), *gone]
    return [*_sorted_by_halves(items, found), *gone]


def _sorted_by_halves(items: list[Any], found: list[int]) -> list[Any]:
    """As upstream's stable sort does where an item without a place is less than any other."""
    made: list[tuple[int, Any]] = []
    for place, item in zip(found, items, strict=True):
        at = len(made)
        while at and (place < 0 or made[at - 1][0] < 0 or place < made[at - 1][0]):
            at -= 1
        made.insert(at, (place, item))
    return [item for _, item in made]


def _mixed(rest: list[Any], mine: list[Any], were: Places, key: str) -> list[Any]:
    """Both lists as one; of the first what stood in front of an item of the second stays there."""
    # upstream: patch.go:mergeSortedSlice
    made = []
    at = 0
    for item in mine:
        place = were.get(_name(item, key))
        while at < len(rest) and place is not None:
            other = were.get(_name(rest[at], key))
            if other is None or other >= place:
                break
            made.append(rest[at])
            at += 1
        made.append(item)
    return [*made, *rest[at:]]


def require_order(items: list[Any], order: list[Any], key: str) -> None:
    """Refuse a patch whose list is not in the order that it itself sets. Raises ApiError 500."""
    # upstream: patch.go:validatePatchWithSetOrderList
    if not items or not order:
        return
    kept = items
    if key:
        for item in items:
            if not isinstance(item, dict):
                raise bad_argument(go_kind({}), item)
        kept = [item for item in items if not is_deleted(item)]
    mine = theirs = 0
    while mine < len(kept) and theirs < len(order):
        if isinstance(kept[mine], dict) and DIRECTIVE in kept[mine]:
            mine += 1
            continue
        mine += _is_same(kept[mine], order[theirs], key)
        theirs += 1
    if mine < len(kept) and theirs >= len(order):
        raise refused(
            f"The order in patch list:\n{go_text(items)}\n doesn't match {SET_ORDER} list:\n"
            f"{go_text(order)}\n"
        )


def _is_same(left: Any, right: Any, key: str) -> bool:
    if key:
        for item in (left, right):
            if not isinstance(item, dict):
                raise bad_argument(go_kind({}), item)
        require_keys((left, right), key)
        left, right = left[key], right[key]
    if type(left) is type(right) and isinstance(left, dict | list):
        raise crashed()
    return canonical_key(left) == canonical_key(right)


def require_keys(items: Iterable[Any], key: str) -> None:
    """Refuse items that are no objects with that member. Raises ApiError 500."""
    for item in items:
        if not isinstance(item, dict):
            raise bad_argument(go_kind({}), item)
        if key not in item:
            raise no_key(item, key)


def is_deleted(item: Any) -> bool:
    """Whether an item only says that another goes."""
    return isinstance(item, dict) and item.get(DIRECTIVE) == DELETE


def _places(items: list[Any], key: str) -> Places:
    """Where each item first stands."""
    return {_name(item, key): at for at, item in reversed(list(enumerate(items)))}


def _name(item: Any, key: str) -> str | bytes:
    """What tells an item from the others."""
    value = item.get(key) if key and isinstance(item, dict) else item
    return canonical_key(value)
