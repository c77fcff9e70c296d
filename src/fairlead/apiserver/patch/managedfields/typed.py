"""Compares, merges and prunes typed values; a typed value is a JSON value with its schema.

The schema determines which parts of a value are fields. An atomic list or map is one field. A
granular object has one field per member. A set or associative list has one field per item (see
`path_element`). Null has no fields below it.

upstream: sigs.k8s.io/structured-merge-diff/typed/{tofieldset,compare,merge,remove,
reconcile_schema}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.patch.managedfields.field_set import EMPTY, LEAF, FieldSet
from fairlead.apiserver.patch.managedfields.path_element import (
    SELF,
    field_element,
    inner_schema,
    is_composite,
    is_leaf,
    items_by_element,
    items_by_known_element,
    member_schema,
)
from fairlead.apiserver.patch.managedfields.presence import presence_of
from fairlead.apiserver.schema.model import ANYTHING, ElementRelationship, Schema, Type

_ABSENT: Final = object()


class _Duplicates(list[Any]):
    """The items of a list that have the same path element. Together they are one field."""


# --- field sets -----------------------------------------------------------------------------


def field_set(schema: Schema, value: Any) -> FieldSet:
    """Return the fields that an applier of `value` claims to own.

    For `{"spec": {"replicas": 1, "template": {}}}` these are .spec.replicas and .spec.template. A
    struct such as `spec` is itself in the set only if it is empty or null. Map keys and list items
    are in the set themselves, in addition to the fields inside them. A list item without a usable
    key is left out.
    """
    # upstream: typed/tofieldset.go:toFieldSetWalker
    if is_leaf(schema, value):
        return LEAF
    if value is None:
        return EMPTY
    made: FieldSet = {}
    if schema.type is Type.LIST:
        for element, item in _by_element(items_by_known_element(schema, value)).items():
            # Duplicates are owned as one field, without the fields inside them.
            is_single = type(item) is not _Duplicates
            inner = field_set(_item_schema(schema), item) if is_single else EMPTY
            made[element] = {SELF: {}, **inner}
        made.pop("", None)
        return made
    for key, item in value.items():
        inner = field_set(member_schema(schema, key), item)
        if key not in schema.fields or item is None or item == {}:
            inner = {SELF: {}, **inner}
        if inner:
            made[field_element(key)] = inner
    return made


def with_named_fields(schema: Schema, fields: FieldSet) -> FieldSet:
    """Return `fields` plus every struct field on the path to one of `fields`.

    For {.spec.template.labels["a"]}, this adds .spec, .spec.template and .spec.template.labels. Map
    keys and list items on the path are not added.
    """
    # upstream: fieldpath/set.go:EnsureNamedFieldsAreMembers
    made: FieldSet = {}
    for element, node in fields.items():
        if element == SELF:
            made[element] = node
            continue
        inner = with_named_fields(inner_schema(schema, element), node)
        is_named = element[:2] == "f:" and element[2:] in schema.fields
        made[element] = {SELF: {}, **inner} if is_named else inner
    return made


def reconciled_with_schema(schema: Schema, fields: FieldSet) -> FieldSet:
    """Return `fields` in the form that `schema` requires.

    `fields` were recorded with an earlier schema. If a value has become atomic since then, the
    owner of a part of the value owns the whole value: {.spec.selector["a"]} becomes
    {.spec.selector}. Return the same Python object if nothing changes.
    """
    # upstream: typed/reconcile_schema.go:ReconcileFieldSetWithSchema
    made = fields
    for element, node in fields.items():
        inner = _declared_schema(schema, element)
        if inner is None or node.keys() <= {SELF} or not is_composite(inner):
            continue
        is_atomic = inner.topology is ElementRelationship.ATOMIC
        below = LEAF if is_atomic else reconciled_with_schema(inner, node)
        if below is not node:
            made = dict(fields) if made is fields else made
            made[element] = below
    return made


def _declared_schema(schema: Schema, element: str) -> Schema | None:
    """Return the type of the value at `element`; None if the schema does not declare one."""
    if element == SELF or (schema.type is Type.ANY and not schema.fields):
        return None
    if schema.type is Type.LIST:
        return schema.items or ANYTHING
    known = schema.fields.get(element[2:]) if element[:2] == "f:" else None
    return known.schema if known else schema.items


# --- compare --------------------------------------------------------------------------------


class Comparison(Struct):
    """The fields that were added, modified and removed between two values."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Whether the two values are equal."""
        return not (self.added or self.modified or self.removed)


def compare(schema: Schema, old: Any, new: Any) -> Comparison:
    """Return the fields in which `new` differs from `old`. Raises ItemKeyError."""
    # upstream: typed/compare.go:compareWalker
    made = Comparison()
    made.added, made.modified, made.removed = _compare(schema, old, new)
    return made


_Difference = tuple[FieldSet, FieldSet, FieldSet]  # added, modified, removed


def _compare(schema: Schema, old: Any, new: Any) -> _Difference:
    if old is _ABSENT:
        return presence_of(schema)(new), {}, {}
    if new is _ABSENT:
        return {}, {}, presence_of(schema)(old)
    if json_equal(old, new):
        return {}, {}, {}
    if is_leaf(schema, old) or is_leaf(schema, new):
        # A leaf on at least one side: the value was modified. If the other side is composite, all
        # fields below it were added or removed.
        return _below(schema, new), LEAF, _below(schema, old)
    # Both are composite. Null and {} differ, but neither has fields below it.
    if not (old or new):
        return {}, LEAF, {}
    if not old:
        return _below(schema, new), {}, {}
    if not new:
        return {}, {}, _below(schema, old)
    return _compare_members(schema, old, new)


def _compare_members(schema: Schema, old: Any, new: Any) -> _Difference:
    difference: _Difference = ({}, {}, {})
    for element, left, right in _member_pairs(schema, old, new):
        has_duplicates = type(left) is _Duplicates or type(right) is _Duplicates
        compared = _compare_duplicates if has_duplicates else _compare
        parts = compared(inner_schema(schema, element), left, right)
        for fields, part in zip(difference, parts, strict=True):
            if part:
                fields[element] = part
    return difference


def _compare_duplicates(schema: Schema, old: Any, new: Any) -> _Difference:
    """Compare the items that share one path element; `old`, `new` or both are `_Duplicates`."""
    # upstream: compare.go:visitListItems
    if type(old) is type(new):
        return {}, EMPTY if json_equal(old, new) else LEAF, {}
    if type(old) is _Duplicates:
        return EMPTY if new is _ABSENT else presence_of(schema)(new), {}, LEAF
    return LEAF, {}, EMPTY if old is _ABSENT else presence_of(schema)(old)


def _below(schema: Schema, value: Any) -> FieldSet:
    """Return the fields below `value`, without `value` itself."""
    found = presence_of(schema)(value)
    return {element: node for element, node in found.items() if element != SELF}


def _member_pairs(schema: Schema, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path element, old member, new member); identical Python objects are left out.

    A patched object shares its unchanged parts with the original, so most members are skipped.
    """
    is_list = schema.type is Type.LIST
    before, after = _members(schema, old), _members(schema, new)
    prefix = "" if is_list else "f:"
    for element, left in before.items():
        right = after.get(element, _ABSENT)
        if right is not left:
            yield prefix + element, left, right
    for element, right in after.items():
        if element not in before:
            yield prefix + element, _ABSENT, right


def _members(schema: Schema, value: Any) -> dict[str, Any]:
    """Return the members of an object by key, or the items of a list by path element.

    Return {} if `value` is not the list or the object that `schema` requires.
    """
    if schema.type is not Type.LIST:
        return value if isinstance(value, dict) else {}
    return _by_element(items_by_element(schema, value if isinstance(value, list) else []))


def _by_element(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the items by path element; items with the same element are one `_Duplicates`."""
    made: dict[str, Any] = {}
    for element, item in items:
        if element not in made:
            made[element] = item
        elif type(made[element]) is _Duplicates:
            made[element].append(item)
        else:
            made[element] = _Duplicates((made[element], item))
    return made


def _item_schema(schema: Schema) -> Schema:
    return schema.items or ANYTHING


# --- merge ----------------------------------------------------------------------------------


def merged(schema: Schema, base: Any, over: Any) -> Any:
    """Return `base` with the fields of `over`; the other fields of `base` are kept.

    Raises ItemKeyError if an item of a set or associative list has no usable key.
    """
    # upstream: typed/merge.go:mergingWalker
    if is_leaf(schema, over) or is_leaf(schema, base) or base is None:
        return over
    if over is None:  # null contains no fields
        return base or None
    if schema.type is Type.LIST:
        return _merged_list(schema, base, over)
    made = dict(base)
    for key, item in over.items():
        known = key in base
        made[key] = merged(member_schema(schema, key), base[key], item) if known else item
    return made


def _merged_list(schema: Schema, base: list[Any], over: list[Any]) -> list[Any]:
    left = list(items_by_element(schema, base))
    mine: dict[str, Any] = {}
    for element, item in left:
        # Duplicates do not merge: the item of `over` replaces all of them.
        mine[element] = None if element in mine else item
    made = []
    for element, item, is_over in interleaved(left, list(items_by_element(schema, over))):
        other = mine.get(element) if is_over else None
        made.append(item if other is None else merged(_item_schema(schema), other, item))
    return made


Keyed = tuple[str, Any]


def interleaved(left: list[Keyed], right: list[Keyed]) -> Iterator[tuple[str, Any, bool]]:
    """Merge two lists; yield (element, item, whether the item is from `right`).

    Items of `right` keep their order. An item in both lists is yielded once, from `right`. An item
    that is only in `left` stays between the same items as in `left`, as far as the order of `right`
    permits.

        left  a b c    right  a x c    ->  a b x c     (b stays between a and c)
        left  a b c    right  c x a    ->  b c x a     (b stays before c, but not after a)
    """
    # upstream: typed/merge.go:visitListItems
    in_left, in_right = {element for element, _ in left}, {element for element, _ in right}
    # Items in both lists, in right's order; `next_shared` is the first not yet yielded. Left may
    # advance past a shared item only if that item is next, or if it is yielded elsewhere.
    shared = iter([element for element, _ in right if element in in_left])
    next_shared = next(shared, None)
    given: set[str] = set()
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        element = left[at_left][0] if at_left < len(left) else None
        if element is not None and element not in in_right:
            # Only in left: yield it as soon as left reaches it.
            yield *left[at_left], False
            at_left += 1
            continue
        has_both = element is not None and at_right < len(right)
        is_same = has_both and element == right[at_right][0]
        if has_both and not is_same and next_shared not in (None, element):
            # The item is in both lists, but is not the next shared item of right. It is yielded
            # where it stands in right, so left advances past it.
            at_left += 1
            continue
        if is_same or element in given:
            at_left += 1
        if at_right < len(right):
            found = right[at_right][0]
            given.add(found)
            yield *right[at_right], True
            at_right += 1
            if is_same or found == next_shared:
                next_shared = next(shared, None)


# --- remove ---------------------------------------------------------------------------------


def without(schema: Schema, value: Any, fields: FieldSet) -> Any:
    """Return `value` without `fields`.

    A list or object becomes null if it loses all of its items or members. An atomic list or object
    also becomes null if `fields` contains a field inside it.
    """
    # upstream: remove.go:removingWalker
    if value is None or is_leaf(schema, value):
        is_atomic = schema.topology is ElementRelationship.ATOMIC or schema.type is Type.ANY
        return None if is_atomic and isinstance(value, dict | list) else value
    left: Any
    if schema.type is Type.LIST:
        left = []
        for element, item in items_by_known_element(schema, value):
            node = fields.get(element, EMPTY)
            if SELF not in node:
                left.append(without(inner_schema(schema, element), item, node) if node else item)
        return left or None
    left = {}
    for key, item in value.items():
        node = fields.get(field_element(key), EMPTY)
        if SELF not in node:
            left[key] = without(member_schema(schema, key), item, node) if node else item
    return left or None
