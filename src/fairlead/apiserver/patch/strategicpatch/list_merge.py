"""Lists of a strategic merge patch: texts as sets, objects by the member that tells them apart.

upstream: apimachinery/pkg/util/strategicpatch/patch.go:mergeSlice
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.gotext.value import go_text
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DIRECTIVE,
    MERGE,
    REPLACE,
    bad_directive,
    crashed,
    no_key,
    refused,
    unable,
)
from fairlead.apiserver.patch.strategicpatch.list_order import ordered, parted
from fairlead.apiserver.schema.model import Field, Schema, Type

# What becomes of an item by the item of a patch that has the same key.
Merge = Callable[[Json, Json], Json]

_KINDS: Final = {Type.MAP: "map", Type.LIST: "slice", Type.OBJECT: "struct", Type.ANY: "struct"}


def merged_list(
    field: Field, original: list[Any], patch: list[Any], merge: Merge, *, goes: bool = False
) -> list[Any]:
    """`original` with the items of `patch`, those in front that are new.

    `goes`: without them, where they are single values. Raises ApiError 422, 500.
    """
    if not original and not patch:
        return original
    are_objects, key = require_alike(original, patch), field.merge_key
    if not are_objects:
        if goes:
            without = set(map(canonical_key, patch))
            return [item for item in original if canonical_key(item) not in without]
        merged = list(dict.fromkeys([*original, *patch]))
    elif not key:
        raise refused(f"cannot merge lists without merge key for {_kind(field.schema.items)}")
    else:
        original, patch = _without_special(original, patch, key)
        merged = _merged_items(original, patch, key, merge)
    mine, rest = parted(merged, patch, key)
    return ordered(mine, rest, patch, original, key, are_objects=are_objects)


def require_alike(original: list[Any], patch: list[Any]) -> bool:
    """Whether items are objects; all must be, or of one other type. Raises ApiError 422, 500."""
    # upstream: patch.go:sliceElementType
    items = (*original, *patch)
    if not items:
        raise refused("no elements in any of the given slices")
    if items[0] is None:
        raise crashed()
    if isinstance(items[0], list):
        raise unable()
    sorts = {dict if isinstance(item, dict) else type(item) for item in items}
    if len(sorts) > 1:
        shown = f"[{go_text(original)} {go_text(patch)}]"
        raise refused(f"list element types are not identical: {shown}")
    return dict in sorts


def _kind(schema: Schema | None) -> str:
    return _KINDS.get(schema.type, "string") if schema else "string"


def _without_special(
    original: list[Json], patch: list[Json], key: str
) -> tuple[list[Json], list[Json]]:
    """Both lists once the items that are directives have been followed."""
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
                    raise no_key(item, key)
                deleted.add(canonical_key(item[key]))
            case str(found) if found == REPLACE:
                replaces = True
            case str(found) if found == MERGE:
                raise refused("merging lists cannot yet be specified in the patch")
            case other:
                raise bad_directive(other, item)
    if deleted:
        original = [
            one for one in original if key not in one or canonical_key(one[key]) not in deleted
        ]
    return (plain, []) if replaces else (original, plain)


def _merged_items(original: list[Json], patch: list[Json], key: str, merge: Merge) -> list[Json]:
    merged = list(original)
    places: dict[str | bytes, int] = {}
    for at, one in enumerate(original):
        if key in one:
            places.setdefault(canonical_key(one[key]), at)
    for item in patch:
        if key not in item:
            raise no_key(item, key)
        name = canonical_key(item[key])
        if name in places:
            at = places[name]
            merged[at] = merge(merged[at], item)
        else:
            places[name] = len(merged)
            merged.append(item)
    return merged
