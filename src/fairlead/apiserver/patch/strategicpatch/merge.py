"""Strategic merge patch: merge by the types of fields, with directives for what that cannot say.

Lists whose field says so merge, texts as sets and objects by their merge key; all others are
replaced. What a patch adds to a list comes to its front unless `$setElementOrder/<list>` says
where. `$patch: replace | delete` concerns the object it stands in, `$retainKeys` drops all fields
but its own, `$deleteFromPrimitiveList/<list>` takes texts out. What is new is taken as it stands,
and so is what replaces: directives in there are fields that nobody knows.

upstream: apimachinery/pkg/util/strategicpatch/{patch,meta}.go
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.gotext.value import go_kind
from fairlead.apiserver.patch.strategicpatch.directive import (
    DELETE,
    DELETE_FROM,
    DIRECTIVE,
    GONE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    bad_argument,
    bad_directive,
    bad_format,
    drop_nulls,
    list_of,
    refused,
    without_directives,
)
from fairlead.apiserver.patch.strategicpatch.list_merge import merged_list, require_alike
from fairlead.apiserver.patch.strategicpatch.list_order import ordered, parted, require_order
from fairlead.apiserver.schema.model import Field, Schema, Type, Zero

_STRUCTS: Final = (Type.OBJECT, Type.ANY)
_POINTERS: Final = (Zero.KEEP, Zero.NULL)


def apply_strategic_merge(schema: Schema, obj: Json, patch: Json) -> Json:
    """`obj`, of that type, with what `patch` says. Raises ApiError 400, 422, 500.

    The patch loses what was followed: who refuses the result shows what is left of it.
    """
    return _merged(Field(schema, Zero.EMIT), obj, patch)


def _merged(whole: Field, original: Json, patch: Json) -> Json:
    """`original`, the value of that field, with what `patch` says."""
    # upstream: patch.go:mergeMap
    if DIRECTIVE in patch:
        return _directed(patch)
    made = _retained(original, patch) if RETAIN_KEYS in patch else dict(original)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        _set_order(whole, made, patch, key)
    for key, value in patch.items():
        goes = key.startswith(DELETE_FROM)
        name = list_of(key, DELETE_FROM) if goes else ""
        _put(whole, made, name or key, value, goes=goes)
    return made


def _directed(patch: Json) -> Json:
    directive = patch[DIRECTIVE]
    if directive == REPLACE:
        del patch[DIRECTIVE]
        return patch
    if directive == DELETE:
        return {}
    raise bad_directive(directive, patch)


def _retained(original: Json, patch: Json) -> Json:
    """The fields of `original` that $retainKeys names."""
    retained = patch.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise bad_format("retainKeys")
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        special = value is None or key.startswith((DELETE_FROM, SET_ORDER))
        if not special and key not in kept:
            raise bad_format("retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _put(whole: Field, made: Json, key: str, value: Any, *, goes: bool = False) -> None:
    """Let one member of a patch have its way with `made`; `goes`: it is a list of what goes."""
    before = made.get(key)
    if value is None:
        made.pop(key, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        field = _field(whole, key)
        made[key] = value if REPLACE in field.strategies else _merged(field, before, value)
    elif isinstance(before, list) and isinstance(value, list):
        field = _list_field(whole, key)
        merges = goes or MERGE in field.strategies
        made[key] = _merged_list(field, before, value, goes=goes) if merges else value
    elif not goes:
        drop_nulls(value)
        new = without_directives(value)
        if new is GONE:
            made.pop(key, None)
        else:
            made[key] = new


def _merged_list(
    field: Field, original: list[Any], patch: list[Any], *, goes: bool = False
) -> list[Any]:
    items = Field(field.schema.items or field.schema, Zero.EMIT)
    return merged_list(field, original, patch, partial(_merged, items), goes=goes)


def _field(whole: Field, key: str) -> Field:
    """What is known of a member. Raises ApiError 500."""
    # upstream: apimachinery/third_party/forked/golang/json/fields.go:LookupPatchMetadataForStruct
    schema = whole.schema
    if schema.type not in _STRUCTS:
        sort = "map" if schema.type is Type.MAP else "string"
        raise refused(f"merging an object in json but data type is not struct, instead is: {sort}")
    known = schema.fields.get(key) or _folded(schema, key)
    if known is None:
        name = schema.definition.rpartition(".")[2]
        raise refused(f'unable to find api field in struct {name} for the json field "{key}"')
    return known


def _folded(schema: Schema, key: str) -> Field | None:
    """What is known of a member whose name is written in other letters."""
    same = (field for name, field in schema.fields.items() if name.lower() == key.lower())
    return next(same, None)


def _list_field(whole: Field, key: str) -> Field:
    """What is known of a list. Raises ApiError 500."""
    # upstream: patch/meta.go:LookupPatchMetadataForSlice
    field = _field(whole, key)
    if field.schema.type is not Type.LIST and field.zero not in _POINTERS:
        sort = "ptr" if whole.zero in _POINTERS else "struct"
        raise refused(f"expected slice or array type, but got: {sort}")
    return field


def _set_order(whole: Field, made: Json, patch: Json, key: str) -> None:
    """Merge the list that `key` is about now, and take it out of the patch."""
    # upstream: patch.go:mergePatchIntoOriginal
    order = patch.pop(key)
    if not isinstance(order, list):
        raise bad_argument(go_kind([]), order)
    name = list_of(key, SET_ORDER)
    for found in (made, patch):
        if name in found and not isinstance(found[name], list):
            raise bad_argument(go_kind([]), found[name])
    field = _list_field(whole, name)
    wanted: list[Any] = patch.get(name, [])
    require_order(wanted, order, field.merge_key)
    before: list[Any] = made.get(name, [])
    if name not in patch:
        if name not in made:
            return
        merged = before
    elif name not in made:
        merged = without_directives(wanted)
    else:
        merges = MERGE in field.strategies
        merged = _merged_list(field, before, wanted) if merges else wanted
    key = field.merge_key
    mine, rest = parted(merged, order, key)
    are_objects = require_alike(before, wanted)
    made[name] = ordered(mine, rest, order, before, key, are_objects=are_objects)
    patch.pop(name, None)
