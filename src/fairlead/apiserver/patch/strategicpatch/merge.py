"""Strategic merge patch: merges objects and lists as the schema defines, and follows directives.

A list is merged if its field has the patch strategy `merge`. Scalars are merged as a set, and
objects by the merge key. Other lists are replaced. A new list item is put behind the item that
precedes it in the patch. A new item that comes first in the patch is put at the front.
`$setElementOrder/<list>` gives another order. The module `directive` lists the directives.

If the original lacks a member of the patch, or has a value of another type there, the patch's value
is used without its nulls and directives. Two kinds of values keep their directives in the result:
new items of merged lists, and values that replace a whole list or object of the original. These
directives are reported as unknown fields when the result is decoded.

Example, with the merge key `name` of `containers`:

    original  {containers: [{name: a, image: 1}, {name: b, image: 2}]}
    patch     {containers: [{name: c}, {name: b, image: 3}]}
    result    {containers: [{name: c}, {name: a, image: 1}, {name: b, image: 3}]}

upstream: apimachinery/pkg/util/strategicpatch/{patch,meta}.go
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.gotext.value import format_v, type_name
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DELETE_FROM,
    DIRECTIVE,
    MERGE,
    REMOVED,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    bad_format,
    drop_nulls,
    internal_error,
    missing_merge_key,
    panic_error,
    target_list,
    unknown_directive,
    unprocessable,
    without_directives,
    wrong_argument,
)
from fairlead.apiserver.patch.strategicpatch.list_order import (
    in_set_order,
    require_order,
    split_by_patch,
)
from fairlead.apiserver.schema.model import Field, Schema, Type, Zero

_STRUCTS: Final = (Type.OBJECT, Type.ANY)
_POINTERS: Final = (Zero.KEEP, Zero.NULL)


def apply_strategic_merge(schema: Schema, obj: Json, patch: Json) -> Json:
    """Return `obj`, of type `schema`, with `patch` applied. Raises ApiError 400, 422, 500.

    Executed directives are removed from `patch`.
    """
    return _merged(Field(schema, Zero.EMIT), obj, patch)


def _merged(parent: Field, original: Json, patch: Json) -> Json:
    """Return `original`, the value of the field `parent`, with `patch` applied."""
    # upstream: patch.go:mergeMap
    if DIRECTIVE in patch:
        return _follow_directive(patch)
    result = _retain_keys(original, patch) if RETAIN_KEYS in patch else dict(original)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        _set_element_order(parent, result, patch, key)
    for key, value in patch.items():
        is_deletion = key.startswith(DELETE_FROM)
        name = target_list(key, DELETE_FROM) if is_deletion else ""
        _merge_field(parent, result, name or key, value, is_deletion=is_deletion)
    return result


def _follow_directive(patch: Json) -> Json:
    """Return the result of a patch that has a `$patch` member."""
    directive = patch[DIRECTIVE]
    if directive == REPLACE:
        del patch[DIRECTIVE]
        return patch
    if directive == DELETE:
        return {}
    raise unknown_directive(directive, patch)


def _retain_keys(original: Json, patch: Json) -> Json:
    """Return the fields of `original` that the patch's $retainKeys lists.

    Remove $retainKeys from `patch`. Raises ApiError 400 if $retainKeys is not a list, or if the
    patch sets a field that is not in this list.
    """
    retained = patch.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise bad_format("retainKeys")
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        special = value is None or key.startswith((DELETE_FROM, SET_ORDER))
        if not special and key not in kept:
            raise bad_format("retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _merge_field(
    parent: Field, result: Json, key: str, value: Any, *, is_deletion: bool = False
) -> None:
    """Apply one member of a patch (`key`: `value`) to `result`, in place.

    If `is_deletion` is True, `value` contains the scalars to remove from the list `result[key]`.
    """
    before = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        field = _struct_field(parent, key)
        result[key] = value if REPLACE in field.strategies else _merged(field, before, value)
    elif isinstance(before, list) and isinstance(value, list):
        field = _slice_field(parent, key)
        merges = is_deletion or MERGE in field.strategies
        result[key] = (
            _merged_list(field, before, value, is_deletion=is_deletion) if merges else value
        )
    elif not is_deletion:
        drop_nulls(value)
        new = without_directives(value)
        if new is REMOVED:
            result.pop(key, None)
        else:
            result[key] = new


def _merged_list(
    field: Field, original: list[Any], patch: list[Any], *, is_deletion: bool = False
) -> list[Any]:
    items = Field(field.schema.items or field.schema, Zero.EMIT)
    return merged_list(field, original, patch, partial(_merged, items), is_deletion=is_deletion)


def _struct_field(parent: Field, key: str) -> Field:
    """Return the field `key` of the struct `parent`.

    Raises ApiError 500 if `parent` is not a struct, or has no such field.
    """
    # upstream: apimachinery/third_party/forked/golang/json/fields.go:LookupPatchMetadataForStruct
    schema = parent.schema
    if schema.type not in _STRUCTS:
        type_ = "map" if schema.type is Type.MAP else "string"
        raise internal_error(
            f"merging an object in json but data type is not struct, instead is: {type_}"
        )
    known = schema.fields.get(key) or _case_insensitive_field(schema, key)
    if known is None:
        name = schema.definition.rpartition(".")[2]
        raise internal_error(
            f'unable to find api field in struct {name} for the json field "{key}"'
        )
    return known


def _case_insensitive_field(schema: Schema, key: str) -> Field | None:
    """Return the field whose name equals `key` regardless of case; None if there is none."""
    same = (field for name, field in schema.fields.items() if name.lower() == key.lower())
    return next(same, None)


def _slice_field(parent: Field, key: str) -> Field:
    """Return the list field `key` of the struct `parent`.

    Raises ApiError 500 if there is no such field, or if it is not a list.
    """
    # upstream: patch/meta.go:LookupPatchMetadataForSlice
    field = _struct_field(parent, key)
    if field.schema.type is not Type.LIST and field.zero not in _POINTERS:
        type_ = "ptr" if parent.zero in _POINTERS else "struct"
        raise internal_error(f"expected slice or array type, but got: {type_}")
    return field


def _set_element_order(parent: Field, result: Json, patch: Json, key: str) -> None:
    """Merge a list of `patch` into `result`, in the order that a directive defines.

    `key` is the directive's key, `$setElementOrder/LIST`. If `patch` has no LIST, the LIST of
    `result` is only reordered. Also remove the directive and LIST from `patch`.
    """
    # upstream: patch.go:mergePatchIntoOriginal
    order = patch.pop(key)
    if not isinstance(order, list):
        raise wrong_argument(type_name([]), order)
    name = target_list(key, SET_ORDER)
    for owner in (result, patch):
        if name in owner and not isinstance(owner[name], list):
            raise wrong_argument(type_name([]), owner[name])
    field = _slice_field(parent, name)
    patch_list: list[Any] = patch.get(name, [])
    require_order(patch_list, order, field.merge_key)
    before: list[Any] = result.get(name, [])
    if name not in patch:
        if name not in result:
            return
        merged = before
    elif name not in result:
        merged = without_directives(patch_list)
    else:
        merges = MERGE in field.strategies
        merged = _merged_list(field, before, patch_list) if merges else patch_list
    key = field.merge_key
    mine, rest = split_by_patch(merged, order, key)
    are_objects = require_same_type(before, patch_list)
    result[name] = in_set_order(mine, rest, order, before, key, are_objects=are_objects)
    patch.pop(name, None)


# --- lists ---------------------------------------------------------------------------------------

# upstream: apimachinery/pkg/util/strategicpatch/patch.go:mergeSlice

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
    """Return `original` merged with the items of `patch`.

    `in_set_order` determines the order of the items. If `is_deletion` is True and the items are
    scalars, the result is `original` without the scalars in `patch`. Raises ApiError 422, 500.
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
    """Return whether the items of both lists are objects rather than scalars.

    Raises ApiError 500 if both lists are empty or if the items have different types. Raises
    ApiError 422 if the first item of `original` is null or a list. If `original` is empty, this
    applies to the first item of `patch`.
    """
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
    """Return (`original`, `patch`) after execution of the directives in `patch`."""
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
