"""The order of merged lists in a strategic merge patch.

`$setElementOrder` defines the order of the patch's items. By default, these items keep their order
in the patch. The remaining items keep the order of the original. The two sequences are then merged.
A remaining item comes before all patch items that it preceded in the original.

    original  a b c d    patch order  d x b
    from patch           d x b
    rest                 a c
    result               a c d x b       a and c were in front of d

upstream: apimachinery/pkg/util/strategicpatch/patch.go:normalizeElementOrder, mergeSortedSlice,
validatePatchWithSetOrderList
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.apiserver.gotext.value import format_v, type_name
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DIRECTIVE,
    SET_ORDER,
    internal_error,
    missing_merge_key,
    panic_error,
    wrong_argument,
)

Positions = Mapping[str | bytes, int]


def in_set_order(
    from_patch: list[Any],
    rest: list[Any],
    patch_order: list[Any],
    before: list[Any],
    key: str,
    *,
    are_objects: bool,
) -> list[Any]:
    """Return one list: `from_patch` sorted by `patch_order`, merged with `rest` sorted by `before`.

    `before` is the original list. If `are_objects` is True, items are compared by the merge key
    `key`. Otherwise, they are scalars, and `key` is ignored. Raises ApiError 500 if an item should
    be an object with the merge key and is not.
    """
    item_key = key if are_objects else ""
    from_patch = _sorted_by_order(from_patch, patch_order, item_key, are_objects=are_objects)
    rest = _sorted_by_order(rest, before, item_key, are_objects=are_objects)
    return _merge_sorted(rest, from_patch, _positions(before, item_key), item_key)


def split_by_patch(
    merged: list[Any], patch_order: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Return (items of `merged` that are in `patch_order`, other items).

    Raises ApiError 422, 500.
    """
    if not key:
        if any(isinstance(item, dict | list) for item in (*merged, *patch_order)):
            raise panic_error()
    else:
        require_keys(merged, key)
        for index, item in enumerate(patch_order):
            if merged and not isinstance(item, dict):
                raise internal_error(f"value for key {index} is not a map")
    known = _positions(patch_order, key)
    from_patch = [item for item in merged if _item_key(item, key) in known]
    return from_patch, [item for item in merged if _item_key(item, key) not in known]


def _sorted_by_order(
    items: list[Any], order: list[Any], key: str, *, are_objects: bool
) -> list[Any]:
    """Return `items`, sorted by their positions in `order`; delete directives come last."""
    # upstream: patch.go:normalizeSliceOrder
    deletions = []
    if are_objects:
        require_keys(items, key)
        require_keys(order, key)
        deletions = [item for item in items if is_delete_directive(item)]
        items = [item for item in items if not is_delete_directive(item)]
    positions = _positions(order, key)
    found = [positions.get(_item_key(item, key), -1) for item in items]
    if -1 not in found:
        known = sorted(range(len(items)), key=found.__getitem__)
        return [*(items[index] for index in known), *deletions]
    return [*_insertion_sorted(items, found), *deletions]


def _insertion_sorted(items: list[Any], found: list[int]) -> list[Any]:
    """Return `items` in the order that Go's stable sort produces with upstream's comparison.

    `found` contains the position that each item should have, or -1 for an unknown item. The
    comparison contradicts itself: an unknown item is less than every other item, and every other
    item is less than an unknown item. Therefore the result depends on the sorting algorithm. Go's
    sort.Stable uses insertion sort for short lists; this function uses it for all lists.
    """
    result: list[tuple[int, Any]] = []
    for position, item in zip(found, items, strict=True):
        index = len(result)
        while index and (
            position < 0 or result[index - 1][0] < 0 or position < result[index - 1][0]
        ):
            index -= 1
        result.insert(index, (position, item))
    return [item for _, item in result]


def _merge_sorted(
    rest: list[Any], from_patch: list[Any], before_positions: Positions, key: str
) -> list[Any]:
    """Return the items of both lists as one list.

    An item of `rest` stays in front of a patch item if it preceded the patch item in the original
    list. `before_positions` contains the position of each item in the original list.
    """
    # upstream: patch.go:mergeSortedSlice
    result = []
    index = 0
    for item in from_patch:
        position = before_positions.get(_item_key(item, key))
        while index < len(rest) and position is not None:
            other = before_positions.get(_item_key(rest[index], key))
            if other is None or other >= position:
                break
            result.append(rest[index])
            index += 1
        result.append(item)
    return [*result, *rest[index:]]


def require_order(items: list[Any], order: list[Any], key: str) -> None:
    """Raise ApiError 500 if the order of `items` contradicts the patch's $setElementOrder."""
    # upstream: patch.go:validatePatchWithSetOrderList
    if not items or not order:
        return
    items_left = items
    if key:
        for item in items:
            if not isinstance(item, dict):
                raise wrong_argument(type_name({}), item)
        items_left = [item for item in items if not is_delete_directive(item)]
    item_index = order_index = 0
    while item_index < len(items_left) and order_index < len(order):
        if isinstance(items_left[item_index], dict) and DIRECTIVE in items_left[item_index]:
            item_index += 1
            continue
        item_index += _is_same(items_left[item_index], order[order_index], key)
        order_index += 1
    if item_index < len(items_left) and order_index >= len(order):
        raise internal_error(
            f"The order in patch list:\n{format_v(items)}\n doesn't match {SET_ORDER} list:\n"
            f"{format_v(order)}\n"
        )


def _is_same(left: Any, right: Any, key: str) -> bool:
    if key:
        for item in (left, right):
            if not isinstance(item, dict):
                raise wrong_argument(type_name({}), item)
        require_keys((left, right), key)
        left, right = left[key], right[key]
    if type(left) is type(right) and isinstance(left, dict | list):
        raise panic_error()
    return canonical_key(left) == canonical_key(right)


def require_keys(items: Iterable[Any], key: str) -> None:
    """Raise ApiError 500 if an item is not an object with the merge key `key`."""
    for item in items:
        if not isinstance(item, dict):
            raise wrong_argument(type_name({}), item)
        if key not in item:
            raise missing_merge_key(item, key)


def is_delete_directive(item: Any) -> bool:
    """Return whether an item is the directive `$patch: delete`."""
    return isinstance(item, dict) and item.get(DIRECTIVE) == DELETE


def _positions(items: list[Any], key: str) -> Positions:
    """Return {key of an item (`_item_key`): index of the first item with this key}."""
    return {_item_key(item, key): index for index, item in reversed(list(enumerate(items)))}


def _item_key(item: Any, key: str) -> str | bytes:
    """Return the canonical form of a scalar item, or of the merge key's value in an object."""
    value = item.get(key) if key and isinstance(item, dict) else item
    return canonical_key(value)
