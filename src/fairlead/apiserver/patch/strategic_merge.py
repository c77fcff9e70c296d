"""Strategic merge patch: merge by the types of fields, with directives for what that cannot say.

Lists whose field says so merge, texts as sets and objects by their merge key; all others are
replaced. What a patch adds to a list comes to its front unless `$setElementOrder/<list>` says
where. `$patch: replace | delete` concerns the object it stands in, `$retainKeys` drops all fields
but its own, `$deleteFromPrimitiveList/<list>` takes texts out.

upstream: apimachinery/pkg/util/strategicpatch/patch.go, apimachinery/pkg/util/mergepatch/errors.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.likeness import likeness
from fairlead.apiserver.patch.go_text import go_kind, go_text
from fairlead.apiserver.patch.list_order import ordered, require_order
from fairlead.apiserver.schema.model import Field, Schema, Type

Json = dict[str, Any]

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList/"
SET_ORDER: Final = "$setElementOrder/"
MERGE: Final = "merge"
REPLACE: Final = "replace"
DELETE: Final = "delete"
_PLAIN: Final = Field(Schema(Type.ANY))


def apply_strategic_merge(schema: Schema, obj: Json, patch: Json) -> Json:
    """`obj`, of that type, with what `patch` says. Raises ApiError 400, 500."""
    return _merged(schema, obj, patch)


def _merged(schema: Schema, original: Json, patch: Json) -> Json:
    if DIRECTIVE in patch:
        return _directed(patch)
    made = _retained(original, patch)
    rest = {key: value for key, value in patch.items() if key != RETAIN_KEYS}
    for key in [key for key in rest if key.startswith(SET_ORDER)]:
        order = rest.pop(key)
        _set_order(schema, made, rest, key.removeprefix(SET_ORDER), order)
    for key in [key for key in rest if key.startswith(DELETE_FROM)]:
        name, gone = key.removeprefix(DELETE_FROM), rest.pop(key)
        if isinstance(made.get(name), list) and isinstance(gone, list):
            made[name] = _reduced_list(_field(schema, name), made[name], gone)
    for key, value in rest.items():
        _put(schema, made, key, value)
    return made


def _directed(patch: Json) -> Json:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _refused(f"unknown patch type: {other} in map: {go_text(patch)}")


def _retained(original: Json, patch: Json) -> Json:
    """`original`, or the fields of it that $retainKeys names."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    if not isinstance(patch[RETAIN_KEYS], list):
        raise bad_request("invalid patch format of retainKeys")
    kept = {key for key in patch[RETAIN_KEYS] if isinstance(key, str)}
    for key, value in patch.items():
        special = value is None or key == RETAIN_KEYS or key.startswith((DELETE_FROM, SET_ORDER))
        if not special and key not in kept:
            raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _put(schema: Schema, made: Json, key: str, value: Any) -> None:
    """Let one member of a patch have its way with `made`."""
    if value is None:
        made.pop(key, None)
        return
    before = made.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        field = _field(schema, key)
        replaces = REPLACE in field.strategies
        made[key] = without_directives(value) if replaces else _merged(field.schema, before, value)
    elif isinstance(before, list) and isinstance(value, list):
        field = _field(schema, key)
        merges = MERGE in field.strategies
        made[key] = _merged_list(field, before, value) if merges else value
    else:
        made[key] = without_directives(value) if isinstance(value, dict) else _new_list(value)


def _new_list(value: Any) -> Any:
    """A list where there was none: what it deletes was not there."""
    if not isinstance(value, list):
        return value
    kept = [item for item in value if not _is_directive(item)]
    return [without_directives(item) if isinstance(item, dict) else item for item in kept]


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and item.get(DIRECTIVE) in (DELETE, REPLACE, MERGE)


def without_directives(value: Json) -> Json:
    """A new object as its patch describes it: nothing is there yet to be directed."""
    made = {}
    for key, item in value.items():
        if key in (DIRECTIVE, RETAIN_KEYS) or key.startswith((DELETE_FROM, SET_ORDER)):
            continue
        if isinstance(item, dict):
            made[key] = without_directives(item)
        elif item is not None:
            made[key] = item if _is_plain(item) else _new_list(item)
    return made


def _is_plain(item: Any) -> bool:
    return not isinstance(item, list) or not any(isinstance(one, dict) for one in item)


def _field(schema: Schema, key: str) -> Field:
    """What is known of a member; entries of a map are all alike."""
    if schema.type is Type.OBJECT:
        known = schema.fields.get(key)
        if known is None:
            raise _unknown(schema, key)
        return known
    if schema.items is None:
        return _PLAIN
    return Field(schema.items)


def _unknown(schema: Schema, key: str) -> ApiError:
    name = schema.definition.rpartition(".")[2]
    return _refused(f'unable to find api field in struct {name} for the json field "{key}"')


def _merged_list(field: Field, original: list[Any], patch: list[Any]) -> list[Any]:
    """`original` with the items of `patch`, those in front that are new."""
    if not original and not patch:
        return original
    key = field.merge_key
    _require_alike(original, patch)
    if isinstance((original or patch)[0], dict):
        if not key:
            name = field.schema.definition
            raise _refused(f"cannot merge lists without merge key for {name}")
        original, patch = _without_special(original, patch, key)
        merged = _merged_items(field.schema.items, original, patch, key)
    else:
        merged = list(dict.fromkeys([*original, *patch]))
    return ordered(merged, patch, original, key)


def _reduced_list(field: Field, original: list[Any], gone: list[Any]) -> list[Any]:
    """`original` without the texts in `gone`, which are all there is where lists do not merge."""
    if MERGE not in field.strategies:
        return gone
    if not original and not gone:
        return original
    _require_alike(original, gone)
    if isinstance((original or gone)[0], dict):
        return _merged_list(field, original, gone)
    without = set(map(likeness, gone))
    return [item for item in original if likeness(item) not in without]


def _require_alike(original: list[Any], patch: list[Any]) -> None:
    # upstream: apimachinery/pkg/util/strategicpatch/patch.go:sliceElementType
    items = (*original, *patch)
    if items[0] is None or isinstance(items[0], list):
        raise _refused("lists of lists are not supported")
    if len({dict if isinstance(item, dict) else type(item) for item in items}) > 1:
        shown = f"[{go_text(original)} {go_text(patch)}]"
        raise _refused(f"list element types are not identical: {shown}")


def _without_special(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Both lists once the items that are directives have been followed."""
    plain = []
    deleted: set[str | bytes] = set()
    replaces = False
    for item in patch:
        match item.get(DIRECTIVE):
            case None:
                plain.append(item)
            case "delete":
                deleted.add(likeness(_key_of(item, key)))
            case "replace":
                replaces = True
            case "merge":
                raise _refused("merging lists cannot yet be specified in the patch")
            case other:
                raise _refused(f"unknown patch type: {other} in map: {go_text(item)}")
    if deleted:
        original = [one for one in original if likeness(one.get(key)) not in deleted]
    return (plain, []) if replaces else (original, plain)


def _merged_items(
    schema: Schema | None, original: list[Any], patch: list[Any], key: str
) -> list[Any]:
    merged = list(original)
    places: dict[str | bytes, int] = {}
    for at, one in enumerate(original):
        places.setdefault(likeness(one.get(key)), at)
    for item in patch:
        value = likeness(_key_of(item, key))
        if value in places:
            at = places[value]
            merged[at] = _merged(schema or _PLAIN.schema, merged[at], item)
        else:
            places[value] = len(merged)
            merged.append(without_directives(item))
    return merged


def _key_of(item: Json, key: str) -> Any:
    if key not in item:
        raise _refused(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def _set_order(schema: Schema, made: Json, patch: Json, name: str, order: Any) -> None:
    """Merge the list called `name` now, in that order, and take it out of the patch."""
    if not isinstance(order, list):
        raise _refused(f"expected a []interface {{}}, but received a {go_kind(order)}")
    for found in (made.get(name), patch.get(name)):
        if found is not None and not isinstance(found, list):
            raise _refused(f"expected a []interface {{}}, but received a {go_kind(found)}")
    field = _field(schema, name)
    wanted: list[Any] = patch.pop(name, None) or []
    require_order(wanted, order, field.merge_key)
    before: list[Any] = made.get(name) or []
    if wanted and MERGE in field.strategies:
        merged = _merged_list(field, before, wanted) if before else _new_list(wanted)
    else:
        merged = wanted or before
    if merged or before:
        made[name] = ordered(merged, order, before, field.merge_key)


def _refused(message: str) -> ApiError:
    """500 without a reason: that is what upstream makes of these."""
    return ApiError("", 500, message)
