"""Merging lists of a strategic merge patch: scalars as sets, objects by merge key.

upstream: apimachinery/pkg/util/strategicpatch/patch.go:mergeSlice
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.gotext.value import format_v
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DIRECTIVE,
    MERGE,
    REPLACE,
    internal_error,
    missing_merge_key,
    panic_error,
    unknown_directive,
    unprocessable,
)
from fairlead.apiserver.patch.strategicpatch.list_order import in_set_order, split_by_patch
from fairlead.apiserver.schema.model import Field, Schema, Type

# Merges an item of the original with the item of the patch that has the same key.
MergeItem = Callable[[Json, Json], Json]

_GO_KINDS: Final = {Type.MAP: "map", Type.LIST: "slice", Type.OBJECT: "struct", Type.ANY: "struct"}


def merged_list(
    field: Field,
    original: list[Any],
    patch: list[Any],
    merge: MergeItem,
    *,
    is_deletion: bool = False,
) -> list[Any]:
    """`original` merged with the items of `patch`; new items are at the front.

    With `is_deletion`, removes the scalars in `patch` instead. Raises ApiError 422, 500.
    """
    if not original and not patch:
        return original
    are_objects, key = require_same_type(original, patch), field.merge_key
    if not are_objects:
        if is_deletion:
            without = set(map(canonical_key, patch))
            return [item for item in original if canonical_key(item) not in without]
        merged = list(dict.fromkeys([*original, *patch]))
    elif not key:
        raise internal_error(
            f"cannot merge lists without merge key for {_go_kind_of(field.schema.items)}"
        )
    else:
        original, patch = _follow_list_directives(original, patch, key)
        merged = _merged_items(original, patch, key, merge)
    from_patch, rest = split_by_patch(merged, patch, key)
    return in_set_order(from_patch, rest, patch, original, key, are_objects=are_objects)


def require_same_type(original: list[Any], patch: list[Any]) -> bool:
    """Whether items are objects. Raises ApiError 422, 500 unless all have one type."""
    # upstream: patch.go:sliceElementType
    items = (*original, *patch)
    if not items:
        raise internal_error("no elements in any of the given slices")
    if items[0] is None:
        raise panic_error()
    if isinstance(items[0], list):
        raise unprocessable()
    types = {dict if isinstance(item, dict) else type(item) for item in items}
    if len(types) > 1:
        quoted_lists = f"[{format_v(original)} {format_v(patch)}]"
        raise internal_error(f"list element types are not identical: {quoted_lists}")
    return dict in types


def _go_kind_of(schema: Schema | None) -> str:
    return _GO_KINDS.get(schema.type, "string") if schema else "string"


def _follow_list_directives(
    original: list[Json], patch: list[Json], key: str
) -> tuple[list[Json], list[Json]]:
    """Both lists after the items of `patch` that are directives have been followed."""
    plain = []
    deleted: set[str | bytes] = set()
    replaces = False
    for item in patch:
        if DIRECTIVE not in item:
            plain.append(item)
            continue
        match item[DIRECTIVE]:
            case str(found) if found == DELETE:
                if key not in item:
                    raise missing_merge_key(item, key)
                deleted.add(canonical_key(item[key]))
            case str(found) if found == REPLACE:
                replaces = True
            case str(found) if found == MERGE:
                raise internal_error("merging lists cannot yet be specified in the patch")
            case other:
                raise unknown_directive(other, item)
    if deleted:
        original = [
            one for one in original if key not in one or canonical_key(one[key]) not in deleted
        ]
    return (plain, []) if replaces else (original, plain)


def _merged_items(
    original: list[Json], patch: list[Json], key: str, merge: MergeItem
) -> list[Json]:
    merged = list(original)
    positions: dict[str | bytes, int] = {}
    for index, one in enumerate(original):
        if key in one:
            positions.setdefault(canonical_key(one[key]), index)
    for item in patch:
        if key not in item:
            raise missing_merge_key(item, key)
        key_value = canonical_key(item[key])
        if key_value in positions:
            index = positions[key_value]
            merged[index] = merge(merged[index], item)
        else:
            positions[key_value] = len(merged)
            merged.append(item)
    return merged
