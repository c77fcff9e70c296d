"""The order of a list that was merged: as the patch has it, and the rest as it was.

upstream: apimachinery/pkg/util/strategicpatch/patch.go:normalizeElementOrder, mergeSortedSlice,
validatePatchWithSetOrderList
"""

from __future__ import annotations

from typing import Any

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.go_text import go_text


def ordered(merged: list[Any], wanted: list[Any], before: list[Any], key: str) -> list[Any]:
    """`merged` with the items that `wanted` has in its order, between those that were there.

    An item of `wanted` stands in front of what was there unless both had an order `before`.
    `key` tells objects apart, "" means that items are texts.
    """
    places = {_name(item, key): at for at, item in reversed(list(enumerate(wanted)))}
    were = {_name(item, key): at for at, item in reversed(list(enumerate(before)))}
    mine = [item for item in merged if _name(item, key) in places]
    rest = [item for item in merged if _name(item, key) not in places]
    mine.sort(key=lambda item: places[_name(item, key)])
    rest.sort(key=lambda item: were.get(_name(item, key), len(before)))
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
    if not items or not order:
        return
    kept = [item for item in items if not (isinstance(item, dict) and _is_deleted(item))]
    at = 0
    for one in order:
        if at < len(kept) and _name(kept[at], key) == _name(one, key):
            at += 1
    if at < len(kept):
        raise ApiError(
            "",
            500,
            f"The order in patch list:\n{go_text(items)}\n doesn't match $setElementOrder list:\n"
            f"{go_text(order)}\n",
        )


def _is_deleted(item: dict[str, Any]) -> bool:
    return item.get("$patch") == "delete"


def _name(item: Any, key: str) -> str:
    """What tells an item from the others, as a text that differs where values differ."""
    value = item.get(key) if key and isinstance(item, dict) else item
    return f"{type(value).__name__}:{value}"
